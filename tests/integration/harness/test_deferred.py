"""Continuations with some of the decisions that a parked turn waits for: the other calls are denied or failed."""

import contextlib

import pytest
from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from footplate.domain import events as ev
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus

from .twins import Chunk, Crash, Model, World, call, model_of

pytestmark = pytest.mark.requirement("K9")

_MANY = 30


def script(number: int) -> list[Chunk]:
    if number:
        return ["Fine"]
    return [
        {
            **call("ask", '{"q": 1}', "c1", 0),
            **call("bash", '{"command": "touch x"}', "c2", 1),
            **call("ask", '{"q": 2}', "c3", 2),
            **call("bash", '{"command": "touch y"}', "c4", 3),
        }
    ]


def pending(world: World) -> list[str]:
    asked = [event for event in world.log.events if ev.asks(event) or event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in asked]


def told(double: Model) -> list[str]:
    """Returns the results in the last request, in the order of the calls, and then the message."""
    parts = double.requests[-1][-1].parts
    returned = {part.tool_call_id: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}
    prompts = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    return [*(returned[name] for name in sorted(returned)), *prompts]


async def test_what_was_answered_reaches_the_model_and_the_rest_is_closed(world: World) -> None:
    world.gate.words = {"bash": Gated.ASK}
    model, double = model_of(world, script)
    assert (await world.run(model)).status is TurnStatus.AWAITING
    first, x, _, _ = pending(world)
    world.answer(first, "Blue.")
    world.confirm(x, "allow")
    world.next_turn("turn_2", "Never mind the rest")
    assert (await world.run(model)).text == "Fine"
    blue, ran, unanswered, denied, prompt = told(double)
    assert (blue, prompt) == ("Blue.", "Never mind the rest")
    assert "no output" in ran
    assert "has no result" in unanswered
    assert "this call was not approved" in denied
    assert world.environment.ran == {"touch x": 1}
    assert len(world.log.of(ev.AGENT_TOOL_RESULT)) == 2


async def test_a_denial_that_came_before_the_message_is_told_as_it_was_given(world: World) -> None:
    world.gate.words = {"bash": Gated.ASK}
    model, double = model_of(world, script)
    await world.run(model)
    world.confirm(pending(world)[1], "deny", "not on a Sunday")
    world.next_turn("turn_2", "Go on")
    await world.run(model)
    assert "not on a Sunday" in told(double)[1]
    assert world.environment.ran == {}


async def test_answers_and_words_of_one_message_go_on_with_the_same_turn(world: World) -> None:
    world.gate.words = {"bash": Gated.ASK}
    model, double = model_of(world, script)
    await world.run(model)
    first, x, second, y = pending(world)
    world.answer(first, "Blue.")
    world.confirm(y, "deny")
    world.answer(second, "Red.")
    world.confirm(x, "allow")
    assert (await world.run(model)).text == "Fine"
    blue, _, red, denied = told(double)
    assert (blue, red) == ("Blue.", "Red.")
    assert "The user denied this call" in denied
    assert world.environment.ran == {"touch x": 1}


@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_worker_that_is_lost_anywhere_makes_no_call_twice(world: World, *, after_commit: bool) -> None:
    """An approved call runs before the new message. Whichever write is lost, it runs at most once."""
    world.gate.words = {"bash": Gated.ASK}
    model, double = model_of(world, script)
    await world.run(model)
    first, x, _, _ = pending(world)
    world.answer(first, "Blue.")
    world.confirm(x, "allow")
    world.next_turn("turn_2", "Go on")
    world.log.crash_after_commit = after_commit
    entries, events, ran = [*world.log.entries], [*world.log.events], 0
    for number in range(1, _MANY):
        world.log.entries, world.log.events = [*entries], [*events]
        world.attempt, world.log.appends, world.log.crash_at = 0, 0, number
        world.environment.ran.clear()
        with contextlib.suppress(Crash):
            await world.run(model)
            break
        world.log.crash_at = None
        assert (await world.run(model)).text == "Fine"
        blue, x_said, *_, prompt = told(double)
        assert (blue, prompt) == ("Blue.", "Go on")
        assert world.environment.ran["touch x"] <= 1
        assert world.environment.ran["touch x"] or "unknown" in x_said
        assert len(world.log.of(ev.AGENT_TOOL_RESULT)) == 2
        ran += 1
    assert ran == 5
