"""The gate in front of the native harness: denied calls have no effect, pending ones wait without a process."""

import asyncio
from collections.abc import Sequence

import pytest
from pydantic_ai.models.function import DeltaToolCall

from footplate.domain.errors import Unavailable
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnStatus

from .doubles import Chunk, Crash, Script, World, call, make_model, text_of

FINAL_TEXT = "done"


def script(*commands: str) -> Script:
    """Returns a script of one response with a call for each command, and a final message."""

    def respond(number: int) -> Sequence[Chunk]:
        if number:
            return [FINAL_TEXT]
        calls: dict[int, DeltaToolCall] = {}
        for index, command in enumerate(commands):
            calls |= call("bash", f'{{"command": "{command}"}}', f"toolu_{index}", index)
        return [calls]

    return respond


def list_calls(world: World) -> list[Event]:
    return world.log.of_type(ev.AGENT_TOOL_USE)


def list_results(world: World) -> list[str]:
    return [text_of(event) for event in world.log.of_type(ev.AGENT_TOOL_RESULT)]


@pytest.mark.requirement("S8")
async def test_a_denied_call_has_no_effect_and_reports_the_reason(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.DENY}
    model, double = make_model(world, script("touch x", "touch y"))
    outcome = await world.run(model)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, FINAL_TEXT)
    assert world.environment.ran == {"touch y": 1}
    assert [use.body["evaluated_permission"] for use in list_calls(world)] == ["deny", "allow"]
    assert list_calls(world)[0].body["permission"] == {
        "reason": "Scripted decision.",
        "rule": "bash(…)",
        "layer": "project",
    }
    assert "rule bash(…) of the project" in list_results(world)[0]
    assert "permission" not in list_calls(world)[1].body
    assert len(double.requests) == 2


async def test_a_call_that_requires_approval_parks_the_turn_and_runs_once(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK, "touch z": Gated.ASK}
    model, double = make_model(world, script("touch x", "touch y", "touch z"))
    parked = await world.run(model)
    first, _, third = list_calls(world)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (first.id, third.id))
    assert world.environment.ran == {"touch y": 1}
    world.confirm(first.id, "allow")
    assert (await world.run(model)).pending == (third.id,)
    assert world.environment.ran == {"touch y": 1, "touch x": 1}
    world.confirm(third.id, "deny", "not on a Sunday")
    assert (await world.run(model)).text == FINAL_TEXT
    assert world.environment.ran == {"touch y": 1, "touch x": 1}
    assert any("not on a Sunday" in text for text in list_results(world))
    assert len(list_results(world)) == 3
    assert len(double.requests) == 2


async def test_a_user_changes_the_input(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK, "touch w": Gated.DENY}
    model, _ = make_model(world, script("touch x", "touch x"))
    await world.run(model)
    first, second = list_calls(world)
    world.confirm(first.id, "allow", updated={"command": "touch y"})
    world.confirm(second.id, "allow", updated={"command": "touch w"})
    assert (await world.run(model)).text == FINAL_TEXT
    assert world.environment.ran == {"touch y": 1}
    assert world.gate.calls[-2:] == [("bash", {"command": "touch y"}), ("bash", {"command": "touch w"})]
    made, denied = list_results(world)
    assert '{"command": "touch y"}' in made
    assert denied.startswith("Denied by")


async def test_a_crash_in_an_approved_call_makes_its_outcome_unknown(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    model, _ = make_model(world, script("touch x"))
    await world.run(model)
    world.confirm(list_calls(world)[0].id, "allow")
    world.environment.crash_in = "touch x"
    with pytest.raises(Crash):
        await world.run(model)
    assert (await world.run(model)).text == FINAL_TEXT
    assert world.environment.ran == {"touch x": 1}
    assert "unknown" in list_results(world)[0]


async def test_rules_that_changed_meanwhile_deny_an_approved_call(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    model, _ = make_model(world, script("touch x"))
    await world.run(model)
    world.confirm(list_calls(world)[0].id, "allow")
    world.gate.outcomes = {"touch x": Gated.DENY}
    assert (await world.run(model)).text == FINAL_TEXT
    assert not world.environment.ran
    assert (len(list_calls(world)), len(list_results(world))) == (1, 1)
    assert list_results(world)[0].startswith("Denied by")


async def test_a_new_message_denies_pending_calls(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    model, double = make_model(world, script("touch x"))
    await world.run(model)
    asked = list_calls(world)[0]
    world.next_turn("turn_2", "Leave it")
    double.base = 1
    await world.run(make_model(world, lambda _: [FINAL_TEXT])[0])
    assert not world.environment.ran
    (result,) = world.log.of_type(ev.AGENT_TOOL_RESULT)
    assert result.body["tool_use_id"] == asked.id
    assert "new message" in text_of(result)


async def test_an_interrupt_closes_pending_calls(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    model, _ = make_model(world, script("touch x", "sleep 60", "touch y"))
    running = asyncio.create_task(world.run(model))
    await world.environment.started.wait()
    world.interrupt.set()
    assert (await running).status is TurnStatus.INTERRUPTED
    assert world.environment.ran == {"sleep 60": 1}
    asked, slept = list_calls(world)
    closed = {result.body["tool_use_id"]: text_of(result) for result in world.log.of_type(ev.AGENT_TOOL_RESULT)}
    assert closed.keys() == {asked.id, slept.id}
    assert "Not run" in closed[asked.id]


async def test_nothing_runs_without_a_decision(world: World) -> None:
    world.gate.failure = Unavailable("The database does not answer.")
    model, double = make_model(world, script("touch x"))
    with pytest.raises(Unavailable):
        await world.run(model)
    assert not world.environment.ran
    assert not list_calls(world)
    world.gate.failure = None
    assert (await world.run(model)).text == FINAL_TEXT
    assert world.environment.ran == {"touch x": 1}
    assert len(double.requests) == 2
