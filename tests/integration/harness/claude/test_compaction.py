"""The real CLI compacts a conversation: the log records it and keeps all lines, and any host continues from there."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import CONFIG, Desk
from tests.integration.harness.claude.lines import called, entries, line, prompt, result, said
from tests.integration.harness.twins import MemoryLog

from footplate.domain import events as ev
from footplate.domain.json import JsonObject
from footplate.domain.ports import Entry
from footplate.harness.claude import options, recovery
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.recovery import Settlement
from footplate.harness.claude.transcript import Transcript
from footplate.testing import ScriptedModel, Step, replies, reply, text, tool, usage
from footplate.testing.scripts import Request, Script

WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
FULL = 190_000
"""Tokens: more than the context window that the CLI is given."""
SUMMARY = "They looked at the files. [[script:after]]"


def long(request: Request) -> Sequence[Step]:
    if "create a detailed summary" in request.prompt:
        return [text(f"<summary>{SUMMARY}</summary>")]
    if request.n == 0:
        return [text("Looking."), tool("Bash", {"command": "echo hi"}), usage(input_tokens=FULL)]
    return [text("Still all there.")]


SCRIPTS: dict[str, Script] = {
    "long": long,
    "after": replies(reply(text("After it."), repeat=True)),
    "short": replies([text("Short.")]),
}


@pytest.fixture
async def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    # By default, the CLI waits until the provider refuses a request that is too long.
    monkeypatch.setitem(options._VARIABLES, WINDOW, "100000")
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path)
        yield runner
        await runner.close()


async def test_it_is_told_once_and_the_next_host_goes_on_from_there(
    runner: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.turn("First of all. [[script:short]]", "one")
    outcome = await runner.turn("Look. [[script:long]]", "one")
    assert outcome.text == "After it."
    types = [event.type for event in runner.told()]
    assert types.count(ev.CONTEXT_COMPACTED) == 1
    assert types.index(ev.AGENT_TOOL_RESULT) < types.index(ev.CONTEXT_COMPACTED) < types.index(ev.AGENT_MESSAGE, 5)
    before = len(runner.log.entries)
    await runner.turn("And now? [[script:short]]", "two")
    shown = str(runner.model.requests()[-1].body)
    assert SUMMARY in shown
    assert "First of all." not in shown
    assert "After it." in shown
    assert ev.CONTEXT_COMPACTED not in [event.type for event in runner.told()]
    # A fork from an earlier event starts with the conversation as it was then.
    lines = runner.log.entries[:before]
    boundary = next(n for n, kept in enumerate(lines) if "compact_boundary" in str(kept.body))
    monkeypatch.delitem(options._VARIABLES, WINDOW)
    runner.log = MemoryLog(entries=[*lines[:boundary]])
    await runner.turn("From before. [[script:short]]", "three")
    shown = str(runner.model.requests()[-1].body)
    assert SUMMARY not in shown
    assert "First of all." in shown


def boundary(uuid: str) -> JsonObject:
    return {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": None, "isSidechain": False}


def summary(uuid: str) -> JsonObject:
    return {**line("user", uuid, [{"type": "text", "text": "In short."}]), "isCompactSummary": True}


def settle(history: list[Entry]) -> Settlement:
    return recovery.settle(
        "turn_1", Transcript(history), [], timestamp="2026-01-01T00:00:00.000Z", custom=CustomTools(CONFIG)
    )


def test_a_turn_that_was_lost_right_after_it_goes_on() -> None:
    history = entries(
        "turn_1", prompt("turn_1"), called("a", "m", "t1"), result("b", "t1"), boundary("c"), summary("d")
    )
    found = settle(history)
    assert (found.way, found.entries) == ("continue", ())


def test_a_turn_that_began_with_it_and_was_not_answered_is_begun_again() -> None:
    history = entries("turn_1", prompt("turn_1"), boundary("c"), summary("d"))
    assert settle(history).way == "prompt"


def test_an_answer_after_it_is_the_answer() -> None:
    history = entries("turn_1", prompt("turn_1"), boundary("c"), summary("d"), said("e", "m", "Well."))
    found = settle(history)
    assert (found.way, found.text) == ("answered", "Well.")
