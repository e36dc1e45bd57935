"""Edge cases of a turn: later attempts, responses with refused calls, and unexpected ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.desk import Desk, asking_desk
from tests.integration.harness.claude.lines import PLACE, called, entries, prompt, result, said
from tests.integration.harness.claude.test_custom_tools import until
from tests.integration.harness.claude.test_store import STOP, begin, delta, recorder_of, stream, types
from tests.integration.harness.twins import LocalEnvironment, World

from footplate.domain import events as ev
from footplate.domain.errors import HandOver, Overloaded, Permanent
from footplate.harness.claude import leaving, transcript
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.mapping import Call
from footplate.harness.leftovers import UNANSWERED
from footplate.testing import overloaded, replies, reply, text, tool

pytestmark = pytest.mark.timing

NAME = "mcp__custom__ask"
SCRIPTS = {
    "ask": replies([tool(NAME, {"q": 1})], [text("Thanks.")]),
    "two": replies([tool(NAME, {"q": 1}), tool(NAME, {"q": 2})], [text("Thanks.")]),
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
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asking_desk(SCRIPTS, tmp_path) as runner:
        yield runner


def usage_delta(tokens: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": tokens}}


def tool_block(index: int) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use"}}


def results(runner: Desk) -> str:
    return str(runner.model.requests()[-1].body)


# The CLI of a second attempt learns which calls the first one closed.


async def test_the_second_attempt_of_a_turn_knows_that_the_question_was_not_answered(runner: Desk) -> None:
    await runner.turn("Ask. [[script:ask]]", "one")
    runner.next_turn("Never mind. [[script:busy]]")
    with pytest.raises(Overloaded):
        await runner.try_it("two")
    assert UNANSWERED in results(runner)
    await runner.try_it("three")
    assert UNANSWERED in results(runner)


async def test_a_turn_that_was_handed_over_at_its_start_knows_that_the_question_was_not_answered(runner: Desk) -> None:
    await runner.turn("Ask. [[script:ask]]", "one")
    runner.next_turn("Never mind. [[script:short]]")
    runner.handover.set()
    with pytest.raises(HandOver):
        await runner.try_it("two")
    runner.handover.clear()
    await runner.try_it("three")
    assert UNANSWERED in results(runner)


# The CLI refuses a call while the model's response continues.


async def test_a_refused_call_in_the_middle_of_an_answer_does_not_cut_it_in_two(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), tool_block(0))
    await recorder.mirrored(PLACE, [prompt("turn_1"), called("a", "m", "t1"), result("b", "t1", "No such tool")])
    stream(recorder, tool_block(1), usage_delta(70), STOP)
    await recorder.mirrored(PLACE, [called("c", "m", "t2")])
    recorder.close()
    assert len(world.log.of(ev.MODEL_REQUEST_START)) == 1
    assert [event.body["is_error"] for event in world.log.of(ev.MODEL_REQUEST_END)] == [False]
    assert sum(used.output_tokens for used in world.log.usage) == 70
    assert sum(used.requests for used in world.log.usage) == 1


def test_a_turn_is_not_left_in_the_middle_of_an_answer() -> None:
    lines = [result("a", "t1"), called("b", "n", "t2"), result("c", "t2", "No such tool"), called("d", "n", "t3")]
    facts = [transcript.fact_in(kept) for kept in entries("turn_1", *lines)]
    assert leaving.safe_point(facts, ["t1"]) == 1


async def test_a_call_beside_a_refused_one_is_not_lost_in_a_hand_over(runner: Desk) -> None:
    """Seen with the real CLI: the turn completed, but a call that the model had requested was never run."""
    runner.custom_tools = ()
    runner.next_turn("Go. [[script:leave]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE, running)
    runner.handover.set()
    with pytest.raises(HandOver):
        await running
    runner.handover.clear()
    await runner.try_it()
    assert (runner.folder / "host" / "work" / "ran").exists()


async def test_an_answer_to_steering_that_is_cut_short_is_paid_for(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), delta("Hi"), STOP)
    await recorder.mirrored(PLACE, [prompt("turn_1"), said("a", "m", "Hi")])
    await recorder.settle()  # the CLI ended, and a user message arrived meanwhile
    before = len(world.log.usage)
    stream(recorder, begin("n"), usage_delta(70), delta("Half an "))
    await recorder.settle("interrupted")
    assert types(world)[-3:] == [ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    assert [used.output_tokens for used in world.log.usage[before:]] == [70]
    await recorder.settle("lost")  # ending the turn after that changes nothing
    assert [used.output_tokens for used in world.log.usage[before:]] == [70]


async def test_a_hand_over_does_not_wait_for_an_answer_without_a_word(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.settle()
    stream(recorder, begin("n"), delta("And"))
    async with asyncio.timeout(30):
        await recorder.hand_over()


# Unexpected ends.


async def test_a_cli_that_cannot_be_started_leaves_no_request_open(
    runner: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Permanent("Claude Code cannot be started in this environment.")

    monkeypatch.setattr(Connection, "open", refuse)
    with pytest.raises(Permanent):
        await runner.turn("Hello")
    assert [event.type for event in runner.told()].count(ev.MODEL_REQUEST_START) == [
        event.type for event in runner.told()
    ].count(ev.MODEL_REQUEST_END)


async def test_a_pause_that_is_cut_off_does_not_end_the_turn(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.mirrored(PLACE, [prompt("turn_1"), called("a", "m", "t1", name=NAME)])
    await recorder.intend(Call("t1", NAME, {"command": "ls"}))
    assert await recorder.asking.ask("t1", NAME, recorder)
    pausing = asyncio.create_task(recorder.asking.pause(recorder))
    await recorder.asking.over.wait()
    pausing.cancel()  # as the SDK does when the CLI withdraws its question
    await asyncio.gather(pausing, return_exceptions=True)
    assert not recorder.failed.done()
