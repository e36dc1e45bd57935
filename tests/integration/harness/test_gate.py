"""The gate in front of the native harness: denied calls have no effect, pending ones wait without a process."""

import asyncio
from collections.abc import Sequence

import pytest
from pydantic_ai.models.function import DeltaToolCall

from footplate.domain import events as ev
from footplate.domain.errors import Unavailable
from footplate.domain.events import Event
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus

from .twins import Chunk, Crash, Script, World, call, model_of, texts

LAST = "done"


def script(*commands: str) -> Script:
    """Returns a script of one response with a call for each command, and a final message."""

    def answer(number: int) -> Sequence[Chunk]:
        if number:
            return [LAST]
        calls: dict[int, DeltaToolCall] = {}
        for index, command in enumerate(commands):
            calls |= call("bash", f'{{"command": "{command}"}}', f"toolu_{index}", index)
        return [calls]

    return answer


def uses(world: World) -> list[Event]:
    return world.log.of(ev.AGENT_TOOL_USE)


def results(world: World) -> list[str]:
    return [texts(event) for event in world.log.of(ev.AGENT_TOOL_RESULT)]


@pytest.mark.requirement("S8")
async def test_a_denied_call_has_no_effect_and_says_why(world: World) -> None:
    world.gate.words = {"touch x": Gated.DENY}
    model, double = model_of(world, script("touch x", "touch y"))
    outcome = await world.run(model)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, LAST)
    assert world.environment.ran == {"touch y": 1}
    assert [use.body["evaluated_permission"] for use in uses(world)] == ["deny", "allow"]
    assert uses(world)[0].body["permission"] == {
        "reason": "Scripted decision.",
        "rule": "bash(…)",
        "layer": "project",
    }
    assert "rule bash(…) of the project" in results(world)[0]
    assert "permission" not in uses(world)[1].body
    assert len(double.requests) == 2


async def test_an_ask_parks_and_goes_on_once(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK, "touch z": Gated.ASK}
    model, double = model_of(world, script("touch x", "touch y", "touch z"))
    parked = await world.run(model)
    first, _, third = uses(world)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (first.id, third.id))
    assert world.environment.ran == {"touch y": 1}
    world.confirm(first.id, "allow")
    assert (await world.run(model)).pending == (third.id,)
    assert world.environment.ran == {"touch y": 1, "touch x": 1}
    world.confirm(third.id, "deny", "not on a Sunday")
    assert (await world.run(model)).text == LAST
    assert world.environment.ran == {"touch y": 1, "touch x": 1}
    assert any("not on a Sunday" in text for text in results(world))
    assert len(results(world)) == 3
    assert len(double.requests) == 2


async def test_a_person_changes_the_input(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK, "touch w": Gated.DENY}
    model, _ = model_of(world, script("touch x", "touch x"))
    await world.run(model)
    first, second = uses(world)
    world.confirm(first.id, "allow", updated={"command": "touch y"})
    world.confirm(second.id, "allow", updated={"command": "touch w"})
    assert (await world.run(model)).text == LAST
    assert world.environment.ran == {"touch y": 1}
    assert world.gate.asked[-2:] == [("bash", {"command": "touch y"}), ("bash", {"command": "touch w"})]
    made, denied = results(world)
    assert '{"command": "touch y"}' in made
    assert denied.startswith("Denied by")


async def test_a_crash_in_an_allowed_call_leaves_it_unknown(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK}
    model, _ = model_of(world, script("touch x"))
    await world.run(model)
    world.confirm(uses(world)[0].id, "allow")
    world.environment.crash_in = "touch x"
    with pytest.raises(Crash):
        await world.run(model)
    assert (await world.run(model)).text == LAST
    assert world.environment.ran == {"touch x": 1}
    assert "unknown" in results(world)[0]


async def test_rules_that_changed_meanwhile_deny_what_a_person_allowed(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK}
    model, _ = model_of(world, script("touch x"))
    await world.run(model)
    world.confirm(uses(world)[0].id, "allow")
    world.gate.words = {"touch x": Gated.DENY}
    assert (await world.run(model)).text == LAST
    assert not world.environment.ran
    assert (len(uses(world)), len(results(world))) == (1, 1)
    assert results(world)[0].startswith("Denied by")


async def test_a_new_message_denies_what_waits(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK}
    model, double = model_of(world, script("touch x"))
    await world.run(model)
    asked = uses(world)[0]
    world.next_turn("turn_2", "Leave it")
    double.base = 1
    await world.run(model_of(world, lambda _: [LAST])[0])
    assert not world.environment.ran
    (result,) = world.log.of(ev.AGENT_TOOL_RESULT)
    assert result.body["tool_use_id"] == asked.id
    assert "new message" in texts(result)


async def test_an_interrupt_closes_what_waits(world: World) -> None:
    world.gate.words = {"touch x": Gated.ASK}
    model, _ = model_of(world, script("touch x", "sleep 60", "touch y"))
    running = asyncio.create_task(world.run(model))
    await world.environment.started.wait()
    world.interrupt.set()
    assert (await running).status is TurnStatus.INTERRUPTED
    assert world.environment.ran == {"sleep 60": 1}
    asked, slept = uses(world)
    closed = {result.body["tool_use_id"]: texts(result) for result in world.log.of(ev.AGENT_TOOL_RESULT)}
    assert closed.keys() == {asked.id, slept.id}
    assert "Not run" in closed[asked.id]


async def test_without_a_word_nothing_runs(world: World) -> None:
    world.gate.failure = Unavailable("The database does not answer.")
    model, double = model_of(world, script("touch x"))
    with pytest.raises(Unavailable):
        await world.run(model)
    assert not world.environment.ran
    assert not uses(world)
    world.gate.failure = None
    assert (await world.run(model)).text == LAST
    assert world.environment.ran == {"touch x": 1}
    assert len(double.requests) == 2
