"""Subagents' calls that require approval, with the real CLI: they wait in its process for a limited time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import Desk
from tests.integration.harness.claude.test_subagents import COOK, MUTE, SCOUT, asks, of, thread_ids
from tests.integration.harness.twins import texts

from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.errors import Temporary
from footplate.domain.events import Event, Position
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.leftovers import UNKNOWN
from footplate.testing import ScriptedModel, replies, text, tool
from footplate.testing.strict import assert_valid_event

pytestmark = pytest.mark.timing

COMMAND = "echo hi >> ran"
SLOW = "echo hi >> ran; sleep 60"
SCRIPTS = {
    "ask": replies([asks("look", "scout")], [text("It looked.")]),
    "look": replies([tool("Bash", {"command": COMMAND})], [text("All quiet.")]),
    "both": replies([asks("two", "scout")], [text("It looked.")]),
    "two": replies([tool("Bash", {"command": COMMAND}), tool("Bash", {"command": "echo ho >> ran"})], [text("Well.")]),
    "lost": replies([asks("wait", "scout")], [text("After it.")]),
    "wait": replies([tool("Bash", {"command": SLOW})], [text("Never.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path, subagents=(SCOUT, COOK, MUTE))
        runner.harness = ClaudeHarness(hold_seconds=60)
        runner.gate.words = {"Bash": Gated.ASK}
        yield runner
        await runner.close()


def uses(runner: Desk) -> list[Event]:
    return [event for event in runner.told() if ev.asks(event)]


def results(runner: Desk) -> list[str]:
    """Returns the results of the subagent's calls."""
    told = [event for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT]
    return [texts(event) for event in told if threads.THREAD_ID in event.body]


def ran(runner: Desk) -> list[str]:
    file = runner.folder / "host" / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def until(runner: Desk, number: int) -> list[Event]:
    """Waits until the log has this many calls that require approval, and returns them."""
    async with asyncio.timeout(60):
        while len(uses(runner)) < number:  # noqa: ASYNC110 - the in-memory log sets no event
            await asyncio.sleep(0.02)
    return uses(runner)


@contextlib.asynccontextmanager
async def going(runner: Desk, script: str) -> AsyncIterator[tuple["asyncio.Task[object]", list[Event]]]:
    """Starts a turn and yields its task and the calls that require approval."""
    runner.next_turn(f"Go. [[script:{script}]]")
    task: asyncio.Task[object] = asyncio.create_task(runner.try_it())
    try:
        yield task, await until(runner, 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_allowed_call_is_made_where_it_was_asked(runner: Desk) -> None:
    async with going(runner, "ask") as (task, (use,)):
        assert (ran(runner), runner.answers.heard) == ([], [use.id])
        (thread_id,) = thread_ids(runner)
        assert use.body[threads.THREAD_ID] == thread_id
        waits = of(runner, None)[-1]
        assert waits.body["stop_reason"] == {"type": "requires_action", "event_ids": [use.id]}
        runner.confirm(use.id, "allow")
        outcome = await task
    assert outcome.text == "It looked."  # type: ignore[attr-defined]
    assert ran(runner) == ["hi"]
    states = [event.type for event in of(runner, None) if event.type in {threads.RUNNING, threads.IDLE}]
    assert states == [threads.RUNNING, threads.IDLE, threads.RUNNING, threads.IDLE]
    for number, event in enumerate(runner.told()):
        now = datetime.now(UTC)
        assert_valid_event(ev.wire(Position(number, event, now, now)))


async def test_a_denied_call_has_no_effect(runner: Desk) -> None:
    async with going(runner, "ask") as (task, (use,)):
        runner.confirm(use.id, "deny", deny_message="not today.")
        await task
    assert ran(runner) == []
    assert "not today" in results(runner)[0]


async def test_each_ask_of_an_answer_has_a_word_of_its_own(runner: Desk) -> None:
    """The calls become pending one after the other, as the CLI makes them."""
    async with going(runner, "both") as (task, (first,)):
        runner.confirm(first.id, "deny")
        _, second = await until(runner, 2)
        runner.confirm(second.id, "allow")
        await task
    assert ran(runner) == ["ho"]
    assert len(results(runner)) == 2


async def test_nobody_is_waited_for_longer_than_the_hold(runner: Desk) -> None:
    runner.harness = ClaudeHarness(hold_seconds=0.2)
    outcome = await runner.turn("Go. [[script:ask]]")
    assert outcome.text == "It looked."
    (use,) = uses(runner)
    word = await runner.answers.given(use.id)
    assert word is not None
    assert "There was no decision within 0.2 seconds" in str(word.body["deny_message"])
    assert "can make the call itself" in results(runner)[0]
    assert ran(runner) == []


async def test_a_changed_input_is_not_made(runner: Desk) -> None:
    async with going(runner, "ask") as (task, (use,)):
        runner.confirm(use.id, "allow", updated_input={"command": "echo other >> ran"})
        await task
    assert ran(runner) == []
    assert "echo other" in results(runner)[0]


async def test_rules_that_were_written_meanwhile_count(runner: Desk) -> None:
    async with going(runner, "ask") as (task, (use,)):
        runner.gate.words = {"Bash": Gated.DENY}
        runner.confirm(use.id, "allow")
        await task
    assert ran(runner) == []
    assert "Denied by" in results(runner)[0]


async def test_an_interrupt_ends_the_wait(runner: Desk) -> None:
    async with going(runner, "ask") as (task, (use,)):
        runner.interrupt.set()
        outcome = await task
    assert outcome.status is TurnStatus.INTERRUPTED  # type: ignore[attr-defined]
    (word,) = [event for event in runner.told() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (word.body["tool_use_id"], word.body["result"]) == (use.id, "deny")
    assert ran(runner) == []


async def test_a_lost_process_leaves_nothing_that_waits(runner: Desk) -> None:
    """The pending call is denied in the log, so that no user approves a call that cannot continue."""
    async with going(runner, "ask") as (task, (use,)):
        assert runner.environment is not None
        await runner.environment.aclose()
        with pytest.raises(Temporary):
            await task
    assert ran(runner) == []
    outcome = await runner.try_it()
    assert outcome.text == "It looked."
    (word,) = [event for event in runner.told() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (word.body["tool_use_id"], word.body["result"]) == (use.id, "deny")
    assert [result for result in results(runner) if "outcome of this call is unknown" in result] == []
    ended = [event.body["stop_reason"] for event in of(runner, None) if event.type == threads.IDLE]
    assert ended[-1] == {"type": "end_turn"}


async def test_a_call_that_began_after_its_word_is_unknown_when_its_process_is_lost(runner: Desk) -> None:
    async with going(runner, "lost") as (task, (use,)):
        runner.confirm(use.id, "allow")
        async with asyncio.timeout(30):
            while not ran(runner):  # noqa: ASYNC110 - a tool's own file
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    runner.log.events = [event for event in runner.log.events if event.type != ev.AGENT_TOOL_RESULT]
    await runner.try_it()
    assert results(runner) == [UNKNOWN]
    assert ran(runner) == ["hi"]


async def test_the_call_that_asks_for_a_subagent_waits_too(runner: Desk) -> None:
    runner.gate.words = {"Agent": Gated.ASK}
    async with going(runner, "ask") as (task, (use,)):
        assert thread_ids(runner) == []
        runner.confirm(use.id, "allow")
        await task
    assert len(thread_ids(runner)) == 1
    assert ran(runner) == ["hi"]
