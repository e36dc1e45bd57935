"""The real CLI compacts a conversation: the log records it and keeps all lines, and any host continues from there."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import CONFIG, SessionRunner
from tests.integration.harness.claude.transcript_lines import (
    call_line,
    make_entries,
    make_line,
    prompt_line,
    response_line,
    result_line,
)
from tests.integration.harness.doubles import MemoryLog

from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.harness.claude import recovery
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recovery import RecoveryPlan
from footplate.harness.claude.session import cli_options
from footplate.harness.claude.transcripts.transcript_lines import Transcript
from footplate.testing import ScriptedModel, Step, replies, reply, text, tool, usage
from footplate.testing.model_scripts import Request, Script

WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
FULL = 190_000
"""Tokens: more than the context window that the CLI is given."""
SUMMARY = "They looked at the files. [[script:after]]"


def long_script(request: Request) -> Sequence[Step]:
    if "create a detailed summary" in request.prompt:
        return [text(f"<summary>{SUMMARY}</summary>")]
    if request.n == 0:
        return [text("Looking."), tool("Bash", {"command": "echo hi"}), usage(input_tokens=FULL)]
    return [text("Still all there.")]


SCRIPTS: dict[str, Script] = {
    "long": long_script,
    "after": replies(reply(text("After it."), repeat=True)),
    "short": replies([text("Short.")]),
}


@pytest.fixture
async def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SessionRunner]:
    # By default, the CLI waits until the provider refuses a request that is too long.
    monkeypatch.setitem(cli_options._VARIABLES, WINDOW, "100000")
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path)
        yield runner
        await runner.close()


async def test_compaction_is_recorded_once_and_the_next_host_continues_from_it(
    runner: SessionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.run_turn("First of all. [[script:short]]", "one")
    outcome = await runner.run_turn("Look. [[script:long]]", "one")
    assert outcome.text == "After it."
    types = [event.type for event in runner.turn_events()]
    assert types.count(ev.CONTEXT_COMPACTED) == 1
    assert types.index(ev.AGENT_TOOL_RESULT) < types.index(ev.CONTEXT_COMPACTED) < types.index(ev.AGENT_MESSAGE, 5)
    before = len(runner.log.entries)
    await runner.run_turn("And now? [[script:short]]", "two")
    shown = str(runner.model.requests()[-1].body)
    assert SUMMARY in shown
    assert "First of all." not in shown
    assert "After it." in shown
    assert ev.CONTEXT_COMPACTED not in [event.type for event in runner.turn_events()]
    # A fork from an earlier event starts with the conversation as it was then.
    lines = runner.log.entries[:before]
    boundary = next(n for n, entry in enumerate(lines) if "compact_boundary" in str(entry.body))
    monkeypatch.delitem(cli_options._VARIABLES, WINDOW)
    runner.log = MemoryLog(entries=[*lines[:boundary]])
    await runner.run_turn("From before. [[script:short]]", "three")
    shown = str(runner.model.requests()[-1].body)
    assert SUMMARY not in shown
    assert "First of all." in shown


def boundary_line(uuid: str) -> JsonObject:
    return {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": None, "isSidechain": False}


def summary_line(uuid: str) -> JsonObject:
    return {**make_line("user", uuid, [{"type": "text", "text": "In short."}]), "isCompactSummary": True}


def settle(history: list[Entry]) -> RecoveryPlan:
    return recovery.plan_recovery(
        "turn_1", Transcript(history), [], timestamp="2026-01-01T00:00:00.000Z", custom=CustomTools(CONFIG)
    )


def test_a_turn_lost_right_after_compaction_continues() -> None:
    history = make_entries(
        "turn_1",
        prompt_line("turn_1"),
        call_line("a", "m", "t1"),
        result_line("b", "t1"),
        boundary_line("c"),
        summary_line("d"),
    )
    found = settle(history)
    assert (found.next_step, found.entries) == ("continue", ())


def test_a_turn_that_began_with_compaction_and_has_no_response_starts_again() -> None:
    history = make_entries("turn_1", prompt_line("turn_1"), boundary_line("c"), summary_line("d"))
    assert settle(history).next_step == "prompt"


def test_a_response_after_compaction_is_the_result() -> None:
    history = make_entries(
        "turn_1", prompt_line("turn_1"), boundary_line("c"), summary_line("d"), response_line("e", "m", "Well.")
    )
    found = settle(history)
    assert (found.next_step, found.text) == ("answered", "Well.")
