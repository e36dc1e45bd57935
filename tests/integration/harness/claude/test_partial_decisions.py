"""Continuations with some of the pending decisions, with the real CLI: the other calls are denied or failed."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner, open_with_custom_tool
from tests.integration.harness.claude.test_custom_tools import TOOL_NAME, list_results
from tests.integration.harness.doubles import Crash

from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.recovery_text import NO_CLIENT_RESULT, UNKNOWN
from footplate.testing import replies, text, tool

pytestmark = pytest.mark.requirement("K9")

SCRIPTS = {
    "two": replies([tool(TOOL_NAME, {"q": 1}), tool(TOOL_NAME, {"q": 2})], [text("Thanks.")]),
    "mixed": replies(
        [
            tool(TOOL_NAME, {"q": 1}),
            tool("Bash", {"command": "echo x >> ran"}),
            tool(TOOL_NAME, {"q": 2}),
            tool("Bash", {"command": "echo y >> ran"}),
        ],
        [text("Thanks.")],
    ),
    "short": replies([text("Short.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with open_with_custom_tool(SCRIPTS, tmp_path) as runner:
        runner.gate.outcomes = {"Bash": Gated.ASK}
        yield runner


def list_pending(runner: SessionRunner) -> list[str]:
    asked = [
        event for event in runner.turn_events() if ev.needs_approval(event) or event.type == ev.AGENT_CUSTOM_TOOL_USE
    ]
    return [event.id for event in asked]


def find_by_command(runner: SessionRunner, command: str) -> str:
    (found,) = [
        event.id for event in runner.turn_events() if ev.needs_approval(event) and command in str(event.body["input"])
    ]
    return found


def list_tool_calls(runner: SessionRunner) -> list[str]:
    asked = [event for event in runner.turn_events() if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in sorted(asked, key=lambda event: str(event.body["input"]))]


def list_runs(runner: SessionRunner, host: str) -> list[str]:
    file = runner.folder / host / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def test_the_result_that_arrived_reaches_the_model_and_the_other_call_fails(runner: SessionRunner) -> None:
    assert (await runner.run_turn("Ask. [[script:two]]")).status is TurnStatus.AWAITING
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Blue."))
    assert (await runner.run_turn("Never mind. [[script:short]]")).text == "Short."
    assert list_results(runner) == [(TOOL_NAME, "Blue.", False), (TOOL_NAME, NO_CLIENT_RESULT, True)]


async def test_an_approved_call_runs_before_the_new_message(runner: SessionRunner) -> None:
    assert (await runner.run_turn("Ask. [[script:mixed]]")).status is TurnStatus.AWAITING
    assert len(list_pending(runner)) == 4
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Blue."))
    runner.confirm(find_by_command(runner, "echo x"), "allow")
    assert (await runner.run_turn("Never mind. [[script:short]]")).text == "Short."
    outcomes = {(name, text): is_error for name, text, is_error in list_results(runner)}
    assert outcomes[TOOL_NAME, "Blue."] is False
    assert outcomes[TOOL_NAME, NO_CLIENT_RESULT] is True
    assert [
        is_error for (name, text), is_error in outcomes.items() if "was not approved" in text and name == "Bash"
    ] == [True]
    assert len(outcomes) == 4
    assert list_runs(runner, "host") == ["x"]
    assert len([event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]) == 2


async def test_results_and_decisions_in_one_request_continue_the_same_turn(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:mixed]]")
    first, second = list_tool_calls(runner)
    runner.send_tool_result(second, ev.text_block("Red."))
    runner.confirm(find_by_command(runner, "echo y"), "allow")
    runner.confirm(find_by_command(runner, "echo x"), "deny")
    runner.send_tool_result(first, ev.text_block("Blue."))
    assert (await runner.run_attempt()).text == "Thanks."
    assert [text for name, text, _ in list_results(runner) if name == TOOL_NAME] == ["Blue.", "Red."]
    assert list_runs(runner, "host") == ["y"]


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
async def test_a_worker_lost_before_the_message_runs_no_call_twice(runner: SessionRunner, lost: int) -> None:
    await runner.run_turn("Ask. [[script:mixed]]")
    runner.confirm(find_by_command(runner, "echo x"), "allow")
    runner.begin_turn("Never mind. [[script:short]]")
    runner.log.crash_at, runner.log.crash_after_commit = runner.log.appends + lost, True
    with contextlib.suppress(Crash):
        await runner.run_attempt()
    runner.log.crash_at = None
    assert (await runner.run_attempt()).text == "Short."
    texts = [text for name, text, _ in list_results(runner) if name == "Bash"]
    assert list_runs(runner, "host") == ["x"] or UNKNOWN in texts
    assert len(list_runs(runner, "host")) <= 1
    assert len(list_results(runner)) == 4
