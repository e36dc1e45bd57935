"""Subagents' calls that require approval, with the real CLI: they wait in its process for a limited time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner
from tests.integration.harness.claude.test_subagents import (
    COOK,
    SCOUT,
    WITHOUT_TOOLS,
    call_subagent,
    list_thread_events,
    thread_ids,
)
from tests.integration.harness.doubles import text_of

from footplate.domain.errors import Temporary
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.recovery_text import UNKNOWN
from footplate.testing import ScriptedModel, replies, text, tool
from footplate.testing.sdk_validation import assert_valid_event

pytestmark = pytest.mark.timing

COMMAND = "echo hi >> ran"
SLOW = "echo hi >> ran; sleep 60"
SCRIPTS = {
    "ask": replies([call_subagent("look", "scout")], [text("It looked.")]),
    "look": replies([tool("Bash", {"command": COMMAND})], [text("All quiet.")]),
    "both": replies([call_subagent("two", "scout")], [text("It looked.")]),
    "two": replies([tool("Bash", {"command": COMMAND}), tool("Bash", {"command": "echo ho >> ran"})], [text("Well.")]),
    "lost": replies([call_subagent("wait", "scout")], [text("After it.")]),
    "wait": replies([tool("Bash", {"command": SLOW})], [text("Never.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path, subagents=(SCOUT, COOK, WITHOUT_TOOLS))
        runner.harness = ClaudeHarness(hold_seconds=60)
        runner.gate.outcomes = {"Bash": Gated.ASK}
        yield runner
        await runner.close()


def list_pending_calls(runner: SessionRunner) -> list[Event]:
    return [event for event in runner.turn_events() if ev.needs_approval(event)]


def list_results(runner: SessionRunner) -> list[str]:
    """Returns the results of the subagent's calls."""
    result_events = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    return [text_of(event) for event in result_events if threads.THREAD_ID in event.body]


def list_runs(runner: SessionRunner) -> list[str]:
    file = runner.folder / "host" / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def wait_for_pending_calls(runner: SessionRunner, number: int) -> list[Event]:
    """Waits until the log has this many calls that require approval, and returns them."""
    async with asyncio.timeout(60):
        while len(list_pending_calls(runner)) < number:  # noqa: ASYNC110 - the in-memory log sets no event
            await asyncio.sleep(0.02)
    return list_pending_calls(runner)


@contextlib.asynccontextmanager
async def start_turn(runner: SessionRunner, script: str) -> AsyncIterator[tuple["asyncio.Task[object]", list[Event]]]:
    """Starts a turn and yields its task and the calls that require approval."""
    runner.begin_turn(f"Go. [[script:{script}]]")
    task: asyncio.Task[object] = asyncio.create_task(runner.run_attempt())
    try:
        yield task, await wait_for_pending_calls(runner, 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_approved_call_runs_in_the_waiting_process(runner: SessionRunner) -> None:
    async with start_turn(runner, "ask") as (task, (use,)):
        assert (list_runs(runner), runner.held_approvals.announced) == ([], [use.id])
        (thread_id,) = thread_ids(runner)
        assert use.body[threads.THREAD_ID] == thread_id
        waits = list_thread_events(runner, None)[-1]
        assert waits.body["stop_reason"] == {"type": "requires_action", "event_ids": [use.id]}
        runner.confirm(use.id, "allow")
        outcome = await task
    assert outcome.text == "It looked."  # pyrefly: ignore[missing-attribute]
    assert list_runs(runner) == ["hi"]
    states = [event.type for event in list_thread_events(runner, None) if event.type in {threads.RUNNING, threads.IDLE}]
    assert states == [threads.RUNNING, threads.IDLE, threads.RUNNING, threads.IDLE]
    for number, event in enumerate(runner.turn_events()):
        now = datetime.now(UTC)
        assert_valid_event(ev.to_wire(Position(number, event, now, now)))


async def test_a_denied_call_has_no_effect(runner: SessionRunner) -> None:
    async with start_turn(runner, "ask") as (task, (use,)):
        runner.confirm(use.id, "deny", deny_message="not today.")
        await task
    assert list_runs(runner) == []
    assert "not today" in list_results(runner)[0]


async def test_each_pending_call_of_a_response_has_its_own_decision(runner: SessionRunner) -> None:
    """The calls become pending one after the other, as the CLI makes them."""
    async with start_turn(runner, "both") as (task, (first,)):
        runner.confirm(first.id, "deny")
        _, second = await wait_for_pending_calls(runner, 2)
        runner.confirm(second.id, "allow")
        await task
    assert list_runs(runner) == ["ho"]
    assert len(list_results(runner)) == 2


async def test_a_call_is_denied_after_the_hold_time(runner: SessionRunner) -> None:
    runner.harness = ClaudeHarness(hold_seconds=0.2)
    outcome = await runner.run_turn("Go. [[script:ask]]")
    assert outcome.text == "It looked."
    (use,) = list_pending_calls(runner)
    decision = await runner.held_approvals.find_decision(use.id)
    assert decision is not None
    assert "There was no decision within 0.2 seconds" in str(decision.body["deny_message"])
    assert "can make the call itself" in list_results(runner)[0]
    assert list_runs(runner) == []


async def test_a_call_with_changed_input_does_not_run(runner: SessionRunner) -> None:
    async with start_turn(runner, "ask") as (task, (use,)):
        runner.confirm(use.id, "allow", updated_input={"command": "echo other >> ran"})
        await task
    assert list_runs(runner) == []
    assert "echo other" in list_results(runner)[0]


async def test_rules_that_changed_meanwhile_deny_an_approved_call(runner: SessionRunner) -> None:
    async with start_turn(runner, "ask") as (task, (use,)):
        runner.gate.outcomes = {"Bash": Gated.DENY}
        runner.confirm(use.id, "allow")
        await task
    assert list_runs(runner) == []
    assert "Denied by" in list_results(runner)[0]


async def test_an_interrupt_ends_the_wait(runner: SessionRunner) -> None:
    async with start_turn(runner, "ask") as (task, (use,)):
        runner.interrupt.set()
        outcome = await task
    assert outcome.status is TurnStatus.INTERRUPTED  # pyrefly: ignore[missing-attribute]
    (decision,) = [event for event in runner.turn_events() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (decision.body["tool_use_id"], decision.body["result"]) == (use.id, "deny")
    assert list_runs(runner) == []


async def test_a_lost_process_denies_its_pending_calls(runner: SessionRunner) -> None:
    """The pending call is denied in the log, so that no user approves a call that cannot continue."""
    async with start_turn(runner, "ask") as (task, (use,)):
        assert runner.environment is not None
        await runner.environment.aclose()
        with pytest.raises(Temporary):
            await task
    assert list_runs(runner) == []
    outcome = await runner.run_attempt()
    assert outcome.text == "It looked."
    (decision,) = [event for event in runner.turn_events() if event.type == ev.USER_TOOL_CONFIRMATION]
    assert (decision.body["tool_use_id"], decision.body["result"]) == (use.id, "deny")
    assert [result for result in list_results(runner) if "outcome of this call is unknown" in result] == []
    ended = [event.body["stop_reason"] for event in list_thread_events(runner, None) if event.type == threads.IDLE]
    assert ended[-1] == {"type": "end_turn"}


async def test_an_approved_call_is_unknown_when_its_process_is_lost(runner: SessionRunner) -> None:
    async with start_turn(runner, "lost") as (task, (use,)):
        runner.confirm(use.id, "allow")
        async with asyncio.timeout(30):
            while not list_runs(runner):  # noqa: ASYNC110 - a tool's own file
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    runner.log.events = [event for event in runner.log.events if event.type != ev.AGENT_TOOL_RESULT]
    await runner.run_attempt()
    assert list_results(runner) == [UNKNOWN]
    assert list_runs(runner) == ["hi"]


async def test_the_call_that_starts_a_subagent_waits_too(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Agent": Gated.ASK}
    async with start_turn(runner, "ask") as (task, (use,)):
        assert thread_ids(runner) == []
        runner.confirm(use.id, "allow")
        await task
    assert len(thread_ids(runner)) == 1
    assert list_runs(runner) == ["hi"]
