"""Edge cases of a turn: later attempts, responses with refused calls, and unexpected ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner, open_with_custom_tool
from tests.integration.harness.claude.test_custom_tools import wait_for_event
from tests.integration.harness.claude.test_turn_recorder import (
    STOP_EVENT,
    delta_event,
    list_event_types,
    make_recorder,
    start_event,
    stream_events,
)
from tests.integration.harness.claude.transcript_lines import (
    FILE,
    call_line,
    make_entries,
    prompt_line,
    response_line,
    result_line,
)
from tests.integration.harness.doubles import LocalEnvironment, World

from footplate.domain.errors import HandOver, Overloaded, Permanent
from footplate.domain.sessions import events as ev
from footplate.harness.claude.recording import safe_point
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.recovery_text import NO_CLIENT_RESULT
from footplate.testing import overloaded, replies, reply, text, tool

pytestmark = pytest.mark.timing

TOOL_NAME = "mcp__custom__ask"
SCRIPTS = {
    "ask": replies([tool(TOOL_NAME, {"q": 1})], [text("Thanks.")]),
    "two": replies([tool(TOOL_NAME, {"q": 1}), tool(TOOL_NAME, {"q": 2})], [text("Thanks.")]),
    "busy": replies(reply(text("Well."), first_attempts=[[overloaded()]])),
    "short": replies([text("Short.")]),
    "leave": replies(
        [tool("Bash", {"command": "sleep 0.7"})],
        [tool("Read", {}), tool("Bash", {"command": "echo x >> ran"})],
        [text("Done.")],
    ),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with open_with_custom_tool(SCRIPTS, tmp_path) as runner:
        yield runner


def usage_delta(tokens: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": tokens}}


def tool_block(index: int) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use"}}


def dump_last_request(runner: SessionRunner) -> str:
    return str(runner.model.requests()[-1].body)


# The CLI of a second attempt learns which calls the first one closed.


async def test_the_second_attempt_knows_that_the_call_has_no_result(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:ask]]", "one")
    runner.begin_turn("Never mind. [[script:busy]]")
    with pytest.raises(Overloaded):
        await runner.run_attempt("two")
    assert NO_CLIENT_RESULT in dump_last_request(runner)
    await runner.run_attempt("three")
    assert NO_CLIENT_RESULT in dump_last_request(runner)


async def test_a_turn_handed_over_at_its_start_knows_that_the_call_has_no_result(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:ask]]", "one")
    runner.begin_turn("Never mind. [[script:short]]")
    runner.handover.set()
    with pytest.raises(HandOver):
        await runner.run_attempt("two")
    runner.handover.clear()
    await runner.run_attempt("three")
    assert NO_CLIENT_RESULT in dump_last_request(runner)


# The CLI refuses a call while the model's response continues.


async def test_a_refused_call_does_not_split_a_response(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), tool_block(0))
    await recorder.record_lines(
        FILE, [prompt_line("turn_1"), call_line("a", "m", "t1"), result_line("b", "t1", "No such tool")]
    )
    stream_events(recorder, tool_block(1), usage_delta(70), STOP_EVENT)
    await recorder.record_lines(FILE, [call_line("c", "m", "t2")])
    recorder.close()
    assert len(world.log.of_type(ev.MODEL_REQUEST_START)) == 1
    assert [event.body["is_error"] for event in world.log.of_type(ev.MODEL_REQUEST_END)] == [False]
    assert sum(used.output_tokens for used in world.log.usage) == 70
    assert sum(used.requests for used in world.log.usage) == 1


def test_a_turn_is_not_handed_over_within_a_response() -> None:
    lines = [
        result_line("a", "t1"),
        call_line("b", "n", "t2"),
        result_line("c", "t2", "No such tool"),
        call_line("d", "n", "t3"),
    ]
    facts = [transcript_lines.parse_entry(entry) for entry in make_entries("turn_1", *lines)]
    assert safe_point.find_safe_point(facts, ["t1"]) == 1


async def test_a_call_next_to_a_refused_one_is_not_lost_in_a_hand_over(runner: SessionRunner) -> None:
    """Seen with the real CLI: the turn completed, but a call that the model had requested was never run."""
    runner.custom_tools = ()
    runner.begin_turn("Go. [[script:leave]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    runner.handover.set()
    with pytest.raises(HandOver):
        await running
    runner.handover.clear()
    await runner.run_attempt()
    assert (runner.folder / "host" / "work" / "ran").exists()


async def test_an_interrupted_response_to_steering_is_charged(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), delta_event("Hi"), STOP_EVENT)
    await recorder.record_lines(FILE, [prompt_line("turn_1"), response_line("a", "m", "Hi")])
    await recorder.finish()  # the CLI ended, and a user message arrived meanwhile
    before = len(world.log.usage)
    stream_events(recorder, start_event("n"), usage_delta(70), delta_event("Half an "))
    await recorder.finish("interrupted")
    assert list_event_types(world)[-3:] == [ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    assert [used.output_tokens for used in world.log.usage[before:]] == [70]
    await recorder.finish("lost")  # ending the turn after that changes nothing
    assert [used.output_tokens for used in world.log.usage[before:]] == [70]


async def test_a_hand_over_does_not_wait_for_an_empty_response(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.finish()
    stream_events(recorder, start_event("n"), delta_event("And"))
    async with asyncio.timeout(30):
        await recorder.hand_over()


# Unexpected ends.


async def test_a_cli_that_cannot_start_keeps_no_request_open(
    runner: SessionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Permanent("Claude Code cannot be started in this environment.")

    monkeypatch.setattr(CliConnection, "start", refuse)
    with pytest.raises(Permanent):
        await runner.run_turn("Hello")
    assert [event.type for event in runner.turn_events()].count(ev.MODEL_REQUEST_START) == [
        event.type for event in runner.turn_events()
    ].count(ev.MODEL_REQUEST_END)


async def test_a_cancelled_pause_does_not_end_the_turn(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.record_lines(FILE, [prompt_line("turn_1"), call_line("a", "m", "t1", name=TOOL_NAME)])
    await recorder.authorize(Call("t1", TOOL_NAME, {"command": "ls"}))
    assert await recorder.pending_calls.ask_client("t1", TOOL_NAME, recorder)
    pausing = asyncio.create_task(recorder.pending_calls.wait_before_request(recorder))
    await recorder.pending_calls.parked.wait()
    pausing.cancel()  # as the SDK does when the CLI withdraws its question
    await asyncio.gather(pausing, return_exceptions=True)
    assert not recorder.failed.done()
