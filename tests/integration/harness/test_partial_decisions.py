"""Continuations with some of the decisions that a parked turn waits for: the other calls are denied or failed."""

import contextlib

import pytest
from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus

from .doubles import Chunk, Crash, ScriptedFunctionModel, World, call, make_model

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


def list_pending(world: World) -> list[str]:
    asked = [event for event in world.log.events if ev.needs_approval(event) or event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in asked]


def read_last_request(double: ScriptedFunctionModel) -> list[str]:
    """Returns the results in the last request, in the order of the calls, and then the message."""
    parts = double.requests[-1][-1].parts
    returned = {part.tool_call_id: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}
    prompts = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    return [*(returned[name] for name in sorted(returned)), *prompts]


async def test_given_results_reach_the_model_and_the_other_calls_are_closed(world: World) -> None:
    world.gate.outcomes = {"bash": Gated.ASK}
    model, double = make_model(world, script)
    assert (await world.run(model)).status is TurnStatus.AWAITING
    first, x, _, _ = list_pending(world)
    world.send_tool_result(first, "Blue.")
    world.confirm(x, "allow")
    world.next_turn("turn_2", "Never mind the rest")
    assert (await world.run(model)).text == "Fine"
    blue, ran, unanswered, denied, prompt = read_last_request(double)
    assert (blue, prompt) == ("Blue.", "Never mind the rest")
    assert "no output" in ran
    assert "has no result" in unanswered
    assert "this call was not approved" in denied
    assert world.environment.ran == {"touch x": 1}
    assert len(world.log.of_type(ev.AGENT_TOOL_RESULT)) == 2


async def test_a_denial_before_the_message_keeps_its_reason(world: World) -> None:
    world.gate.outcomes = {"bash": Gated.ASK}
    model, double = make_model(world, script)
    await world.run(model)
    world.confirm(list_pending(world)[1], "deny", "not on a Sunday")
    world.next_turn("turn_2", "Go on")
    await world.run(model)
    assert "not on a Sunday" in read_last_request(double)[1]
    assert world.environment.ran == {}


async def test_results_and_decisions_in_one_request_continue_the_same_turn(world: World) -> None:
    world.gate.outcomes = {"bash": Gated.ASK}
    model, double = make_model(world, script)
    await world.run(model)
    first, x, second, y = list_pending(world)
    world.send_tool_result(first, "Blue.")
    world.confirm(y, "deny")
    world.send_tool_result(second, "Red.")
    world.confirm(x, "allow")
    assert (await world.run(model)).text == "Fine"
    blue, _, red, denied = read_last_request(double)
    assert (blue, red) == ("Blue.", "Red.")
    assert "The user denied this call" in denied
    assert world.environment.ran == {"touch x": 1}


@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_worker_lost_at_any_write_runs_no_call_twice(world: World, *, after_commit: bool) -> None:
    """An approved call runs before the new message. Whichever write is lost, it runs at most once."""
    world.gate.outcomes = {"bash": Gated.ASK}
    model, double = make_model(world, script)
    await world.run(model)
    first, x, _, _ = list_pending(world)
    world.send_tool_result(first, "Blue.")
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
        blue, x_result, *_, prompt = read_last_request(double)
        assert (blue, prompt) == ("Blue.", "Go on")
        assert world.environment.ran["touch x"] <= 1
        assert world.environment.ran["touch x"] or "unknown" in x_result
        assert len(world.log.of_type(ev.AGENT_TOOL_RESULT)) == 2
        ran += 1
    assert ran == 5
