"""Calls of subagents that a person is asked about, with the real CLI: they wait in its process, for a while."""

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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path, subagents=(SCOUT, COOK, MUTE))
        desk.harness = ClaudeHarness(hold=60)
        desk.gate.words = {"Bash": Gated.ASK}
        yield desk
        await desk.close()


def uses(desk: Desk) -> list[Event]:
    return [event for event in desk.told() if ev.asks(event)]


def results(desk: Desk) -> list[str]:
    """Of the subagent's calls."""
    told = [event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]
    return [texts(event) for event in told if threads.THREAD_ID in event.body]


def ran(desk: Desk) -> list[str]:
    file = desk.folder / "host" / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def until(desk: Desk, number: int) -> list[Event]:
    """So many asks are in the log."""
    async with asyncio.timeout(60):
        while len(uses(desk)) < number:  # noqa: ASYNC110 - the log's twin sets no event
            await asyncio.sleep(0.02)
    return uses(desk)


@contextlib.asynccontextmanager
async def going(desk: Desk, script: str) -> AsyncIterator[tuple["asyncio.Task[object]", list[Event]]]:
    """A turn, and what it asks."""
    desk.next_turn(f"Go. [[script:{script}]]")
    task: asyncio.Task[object] = asyncio.create_task(desk.try_it())
    try:
        yield task, await until(desk, 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_allowed_call_is_made_where_it_was_asked(desk: Desk) -> None:
    async with going(desk, "ask") as (task, (use,)):
        assert (ran(desk), desk.answers.heard) == ([], [use.id])
        (thread_id,) = thread_ids(desk)
        assert use.body[threads.THREAD_ID] == thread_id
        waits = of(desk, None)[-1]
        assert waits.body["stop_reason"] == {"type": "requires_action", "event_ids": [use.id]}
        desk.confirm(use.id, "allow")
        outcome = await task
    assert outcome.text == "It looked."  # type: ignore[attr-defined]
    assert ran(desk) == ["hi"]
    states = [event.type for event in of(desk, None) if event.type in {threads.RUNNING, threads.IDLE}]
    assert states == [threads.RUNNING, threads.IDLE, threads.RUNNING, threads.IDLE]
    for number, event in enumerate(desk.told()):
        now = datetime.now(UTC)
        assert_valid_event(ev.wire(Position(number, event, now, now)))


async def test_a_denied_call_has_no_effect(desk: Desk) -> None:
    async with going(desk, "ask") as (task, (use,)):
        desk.confirm(use.id, "deny", deny_message="not today.")
        await task
    assert ran(desk) == []
    assert "not today" in results(desk)[0]


async def test_each_ask_of_an_answer_has_a_word_of_its_own(desk: Desk) -> None:
    """One after the other, as the CLI makes its calls."""
    async with going(desk, "both") as (task, (first,)):
        desk.confirm(first.id, "deny")
        _, second = await until(desk, 2)
        desk.confirm(second.id, "allow")
        await task
    assert ran(desk) == ["ho"]
    assert len(results(desk)) == 2


async def test_nobody_is_waited_for_longer_than_the_hold(desk: Desk) -> None:
    desk.harness = ClaudeHarness(hold=0.2)
    outcome = await desk.turn("Go. [[script:ask]]")
    assert outcome.text == "It looked."
    (use,) = uses(desk)
    word = await desk.answers.given(use.id)
    assert word is not None
    assert "There was no decision within 0.2 seconds" in str(word.body["deny_message"])
    assert "can make the call itself" in results(desk)[0]
    assert ran(desk) == []


async def test_a_changed_input_is_not_made(desk: Desk) -> None:
    async with going(desk, "ask") as (task, (use,)):
        desk.confirm(use.id, "allow", updated_input={"command": "echo other >> ran"})
        await task
    assert ran(desk) == []
    assert "echo other" in results(desk)[0]


async def test_rules_that_were_written_meanwhile_count(desk: Desk) -> None:
    async with going(desk, "ask") as (task, (use,)):
        desk.gate.words = {"Bash": Gated.DENY}
        desk.confirm(use.id, "allow")
        await task
    assert ran(desk) == []
    assert "Denied by" in results(desk)[0]


async def test_an_interrupt_ends_the_wait(desk: Desk) -> None:
    async with going(desk, "ask") as (task, (use,)):
        desk.interrupt.set()
        outcome = await task
    assert outcome.status is TurnStatus.INTERRUPTED  # type: ignore[attr-defined]
    (word,) = [event for event in desk.told() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (word.body["tool_use_id"], word.body["result"]) == (use.id, "deny")
    assert ran(desk) == []


async def test_a_lost_process_leaves_nothing_that_waits(desk: Desk) -> None:
    """The ask is denied in the log, before anybody could answer what nobody can go on with."""
    async with going(desk, "ask") as (task, (use,)):
        assert desk.environment is not None
        await desk.environment.aclose()
        with pytest.raises(Temporary):
            await task
    assert ran(desk) == []
    outcome = await desk.try_it()
    assert outcome.text == "It looked."
    (word,) = [event for event in desk.told() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (word.body["tool_use_id"], word.body["result"]) == (use.id, "deny")
    assert [result for result in results(desk) if "outcome of this call is unknown" in result] == []
    ended = [event.body["stop_reason"] for event in of(desk, None) if event.type == threads.IDLE]
    assert ended[-1] == {"type": "end_turn"}


async def test_a_call_that_began_after_its_word_is_unknown_when_its_process_is_lost(desk: Desk) -> None:
    async with going(desk, "lost") as (task, (use,)):
        desk.confirm(use.id, "allow")
        async with asyncio.timeout(30):
            while not ran(desk):  # noqa: ASYNC110 - a tool's own file
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    desk.log.events = [event for event in desk.log.events if event.type != ev.AGENT_TOOL_RESULT]
    await desk.try_it()
    assert results(desk) == [UNKNOWN]
    assert ran(desk) == ["hi"]


async def test_the_call_that_asks_for_a_subagent_waits_too(desk: Desk) -> None:
    desk.gate.words = {"Agent": Gated.ASK}
    async with going(desk, "ask") as (task, (use,)):
        assert thread_ids(desk) == []
        desk.confirm(use.id, "allow")
        await task
    assert len(thread_ids(desk)) == 1
    assert ran(desk) == ["hi"]
