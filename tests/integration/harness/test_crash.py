"""A worker is lost at every write and inside every tool. The turn resumes from what was stored."""

from collections import Counter
from itertools import pairwise

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart

from footplate.domain.errors import HandOver
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.recovery_text import UNKNOWN

from .doubles import Chunk, Crash, World, call, make_model, text_of

APPENDS = 12
"""Appends of an undisturbed run of the script below. `test_script_has_that_many_appends` checks the number."""
COMMANDS = ("echo 1 >> log", "echo 2 >> log", "echo 3 >> log")


def script(n: int) -> list[Chunk]:
    if n == 0:
        return [
            "Two at once.",
            call("bash", f'{{"command": "{COMMANDS[0]}"}}', "c1", 0),
            call("bash", f'{{"command": "{COMMANDS[1]}"}}', "c2", 1),
        ]
    if n == 1:
        # Some models use an id twice.
        return [call("ask", '{"q": "sure?"}', "c9", 0), call("bash", f'{{"command": "{COMMANDS[2]}"}}', "c1", 1)]
    return ["All done."]


async def run_to_the_end(world: World) -> tuple[TurnOutcome, list[int]]:
    """Resumes the turn after each crash, and sends custom tool results when it parks."""
    model, double = make_model(world, script)
    stored_at_request: list[int] = []
    for _ in range(10):
        try:
            outcome = await world.run(model)
        except (Crash, HandOver):
            world.log.crash_at = None
            world.log.handover.clear()
            continue
        finally:
            stored_at_request = [
                sum(isinstance(message, ModelResponse) for message in request) for request in double.requests
            ]
        if outcome.status is not TurnStatus.AWAITING:
            return outcome, stored_at_request
        for event_id in outcome.pending:
            world.send_tool_result(event_id, "yes")
    raise AssertionError("the turn never ended")


def check(world: World, outcome: TurnOutcome) -> None:
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "All done.")
    assert all(world.environment.ran[command] <= 1 for command in COMMANDS)
    written = (world.environment.path / "log").read_text().split()
    assert written == sorted(set(written)), "an effect happened twice or out of order"
    assert len(world.entries("request")) == 1
    assert len(world.entries("response")) == 3
    _check_every_call_has_one_result(world)
    _check_spans(world)
    ids = [event.id for event in world.log.events]
    assert len(ids) == len(set(ids))


def _check_every_call_has_one_result(world: World) -> None:
    uses = {event.id for event in world.log.of_type("agent.tool_use")}
    results = Counter(event.body["tool_use_id"] for event in world.log.of_type("agent.tool_result"))
    assert set(results) == uses
    assert set(results.values()) == {1}
    messages = world.messages
    for message, following in pairwise(messages):
        if isinstance(message, ModelResponse):
            assert isinstance(following, ModelRequest)
            returned = [part.tool_call_id for part in following.parts if isinstance(part, ToolReturnPart)]
            assert returned == [part.tool_call_id for part in message.tool_calls]


def _check_spans(world: World) -> None:
    starts = [event.id for event in world.log.of_type("span.model_request_start")]
    ends = [event.body["model_request_start_id"] for event in world.log.of_type("span.model_request_end")]
    assert sorted(starts) == sorted(str(end) for end in ends)


async def test_script_has_that_many_appends(world: World) -> None:
    outcome, requests = await run_to_the_end(world)
    check(world, outcome)
    assert world.log.appends == APPENDS
    assert requests == [0, 1, 2]


@pytest.mark.parametrize("after_commit", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("crash_at", range(1, APPENDS + 1))
@pytest.mark.requirement("K11")
async def test_crash_at_every_append(world: World, crash_at: int, *, after_commit: bool) -> None:
    world.log.crash_at, world.log.crash_after_commit = crash_at, after_commit
    outcome, requests = await run_to_the_end(world)
    check(world, outcome)
    # A stored response is never requested again: each request contains all of them.
    assert requests == sorted(requests)
    if after_commit:
        assert requests == [0, 1, 2], "a completed and stored response was paid for twice"
    assert len(requests) <= 4
    # Only a command whose result was lost is reported as unknown.
    unknown = [event for event in world.log.of_type("agent.tool_result") if text_of(event) == UNKNOWN]
    assert len(unknown) <= 1
    for event in unknown:
        assert event.body["is_error"] is True


@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_a_worker_is_asked_to_stop_at_every_append(world: World, at: int) -> None:
    """The turn stops between two steps: nothing is lost, requested again or run twice, and no outcome is unknown."""
    world.log.hand_over_at = at
    outcome, requests = await run_to_the_end(world)
    check(world, outcome)
    assert world.environment.ran == dict.fromkeys(COMMANDS, 1)
    assert requests == [0, 1, 2]
    assert not [event for event in world.log.of_type("agent.tool_result") if text_of(event) == UNKNOWN]
    # During the model's last response, nothing remains to hand over.
    assert world.attempt == (2 if at >= APPENDS - 1 else 3)


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_crash_inside_a_tool_makes_its_outcome_unknown(world: World, command: str) -> None:
    world.environment.crash_in = command
    outcome, requests = await run_to_the_end(world)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "All done.")
    assert world.environment.ran == dict.fromkeys(COMMANDS, 1)
    unknown = [event for event in world.log.of_type("agent.tool_result") if text_of(event) == UNKNOWN]
    assert len(unknown) == 1
    _check_every_call_has_one_result(world)
    _check_spans(world)
    assert requests == [0, 1, 2]


@pytest.mark.parametrize("crash_at", range(1, 6))
async def test_two_crashes_in_a_row(world: World, crash_at: int) -> None:
    world.log.crash_at = crash_at
    model, _ = make_model(world, script)
    with pytest.raises(Crash):
        await world.run(model)
    world.log.crash_at = world.log.appends + 1
    world.log.crash_after_commit = True
    outcome, _ = await run_to_the_end(world)
    check(world, outcome)


async def test_every_call_of_an_abandoned_turn_gets_a_result(world: World) -> None:
    world.environment.crash_in = COMMANDS[0]
    model, _ = make_model(world, script)
    with pytest.raises(Crash):
        await world.run(model)
    world.next_turn("turn_2", "What happened?")
    later, double = make_model(world, lambda _: ["All done."])
    assert (await world.run(later)).status is TurnStatus.COMPLETED
    returned = [part for part in double.requests[0][-1].parts if isinstance(part, ToolReturnPart)]
    assert [part.tool_call_id for part in returned] == ["c1", "c2"]
    assert all("may or may not" in str(part.content) for part in returned)
