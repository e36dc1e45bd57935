"""Hooks after a call, at the end of a turn and of a subagent, and before a compaction, with the real CLI."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner
from tests.integration.harness.claude.test_compaction import SCRIPTS as LONG
from tests.integration.harness.claude.test_compaction import WINDOW
from tests.integration.harness.claude.test_gate import confirm, list_calls, map_results
from tests.integration.harness.claude.test_subagents import SCOUT
from tests.integration.harness.claude.test_subagents import SCRIPTS as DELEGATED

from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.claude.session import cli_options
from footplate.harness.stop_hooks import MAX_CONTINUATIONS
from footplate.testing import ScriptedModel, replies, reply, text, tool

SCRIPTS = {
    **DELEGATED,
    "long": LONG["long"],
    "after": LONG["after"],
    "short": LONG["short"],
    "one": replies([tool("Bash", {"command": "echo hi"})], [text("Done.")]),
    "fails": replies([tool("Bash", {"command": "false"})], [text("Done.")]),
    "talk": replies(reply(text("Word."), repeat=True)),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path)
        yield runner
        await runner.close()


def list_hook_fields(runner: SessionRunner, event: HookEvent) -> list[JsonObject]:
    return [fields for each, fields in runner.gate.hook_events if each is event]


async def test_hook_feedback_on_a_call_is_added_to_its_result(runner: SessionRunner) -> None:
    runner.gate.hook_feedback = {HookEvent.AFTER_TOOL: [HookFeedback("format it", ("by the way",))]}
    assert (await runner.run_turn("Go. [[script:one]]")).text == "Done."
    last = str(runner.model.requests()[-1].body)
    assert "format it" in last
    assert "by the way" in last
    (fields,) = list_hook_fields(runner, HookEvent.AFTER_TOOL)
    assert fields["tool_input"] == {"command": "echo hi"}
    assert isinstance(fields["tool_response"], dict)
    assert fields["tool_response"]["stdout"] == "hi"
    assert len(map_results(runner)) == 1


@pytest.mark.parametrize("refuses", [False, True])
async def test_files_of_a_call_are_uploaded_while_its_result_is_stored(runner: SessionRunner, *, refuses: bool) -> None:
    runner.log.refuses_output = refuses
    assert (await runner.run_turn("Go. [[script:one]]")).text == "Done."
    assert runner.log.uploads == 1
    assert len(map_results(runner)) == 1


async def test_no_hooks_run_after_a_failed_or_denied_call(runner: SessionRunner) -> None:
    await runner.run_turn("Go. [[script:fails]]")
    runner.gate.outcomes = {"Bash": Gated.DENY}
    await runner.run_turn("Go. [[script:one]]")
    assert list_hook_fields(runner, HookEvent.AFTER_TOOL) == []


async def test_hooks_run_after_a_call_that_the_worker_makes(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.gate.hook_feedback = {HookEvent.AFTER_TOOL: [HookFeedback("format it")]}
    assert (await runner.run_turn("Go. [[script:one]]")).status is TurnStatus.AWAITING
    assert list_hook_fields(runner, HookEvent.AFTER_TOOL) == []
    (asked,) = list_calls(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.run_attempt()).text == "Done."
    assert "format it" in str(runner.model.requests()[-1].body)


async def test_a_stop_hook_makes_the_turn_continue(runner: SessionRunner) -> None:
    runner.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("run the tests")]}
    outcome = await runner.run_turn("Go. [[script:talk]]")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Word.")
    assert [fields["stop_hook_active"] for fields in list_hook_fields(runner, HookEvent.STOP)] == [False, True]
    assert len(runner.model.requests()) == 2
    assert "run the tests" in str(runner.model.requests()[-1].body)
    assert (await runner.run_turn("Again. [[script:talk]]")).text == "Word."
    assert "run the tests" in str(runner.model.requests()[-1].body)


async def test_stop_hooks_cannot_continue_a_turn_forever(runner: SessionRunner) -> None:
    runner.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("more")] * 100}
    assert (await runner.run_turn("Go. [[script:talk]]")).status is TurnStatus.COMPLETED
    assert len(runner.model.requests()) == MAX_CONTINUATIONS + 1


async def test_stop_hooks_run_even_if_the_worker_is_lost_at_the_end(runner: SessionRunner) -> None:
    assert (await runner.run_turn("Go. [[script:talk]]")).text == "Word."
    runner.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("run the tests")]}
    assert (await runner.run_attempt("another")).text == "Word."
    assert len(runner.model.requests()) == 2
    assert "run the tests" in str(runner.model.requests()[-1].body)


async def test_hooks_run_at_the_end_of_a_subagent(runner: SessionRunner) -> None:
    runner.subagents = (SCOUT,)
    assert (await runner.run_turn("Go. [[script:ask]]")).text == "It looked."
    (fields,) = list_hook_fields(runner, HookEvent.SUBAGENT_STOP)
    assert fields["agent_type"] == "scout"
    inside = next(
        each for each in list_hook_fields(runner, HookEvent.AFTER_TOOL) if each["tool_input"] == {"command": "echo hi"}
    )
    assert inside["tool_response"]


async def test_hooks_run_before_a_compaction(runner: SessionRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli_options._VARIABLES, WINDOW, "100000")
    await runner.run_turn("First of all. [[script:short]]")
    assert (await runner.run_turn("Look. [[script:long]]")).text == "After it."
    (fields,) = list_hook_fields(runner, HookEvent.COMPACTION)
    assert fields["trigger"] == "auto"
