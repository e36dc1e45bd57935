"""The gate in front of the real CLI: denied calls have no effect, pending ones wait without a process and run once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner
from tests.integration.harness.doubles import Crash

from footplate import failpoints
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.claude.transcripts.transcript_lines import Transcript
from footplate.harness.recovery_text import UNKNOWN
from footplate.testing import ScriptedModel, replies, text, tool

X, Y, Z = "echo x >> x", "echo y >> y", "echo z >> z"
SCRIPTS = {
    "one": replies([tool("Bash", {"command": X})], [text("Done.")]),
    "three": replies(
        [tool("Bash", {"command": X}), tool("Bash", {"command": Y}), tool("Bash", {"command": Z})], [text("Done.")]
    ),
    "read": replies([tool("Bash", {"command": "ls"})], [text("Done.")]),
    "write": replies([tool("Write", {"file_path": "new.txt", "content": "hello"})], [text("Done.")]),
    "grep": replies([tool("Grep", {"pattern": "x", "-i": True})], [text("Done.")]),
    "moves": replies(
        [tool("Bash", {"command": "mkdir sub; cd sub"}), tool("Bash", {"command": X}), tool("Bash", {"command": "ls"})],
        [text("Done.")],
    ),
    "next": replies([text("Heard.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path)
        yield runner
        await runner.close()


def count_runs(runner: SessionRunner) -> dict[str, int]:
    root = runner.folder / "host" / "work"
    return {name: len((root / name).read_text().split()) for name in ("x", "y", "z") if (root / name).exists()}


def list_calls(runner: SessionRunner) -> list[Event]:
    return [event for event in runner.log.events if event.type == ev.AGENT_TOOL_USE]


def map_results(runner: SessionRunner) -> dict[str, str]:
    found = {}
    for event in runner.log.events:
        if event.type == ev.AGENT_TOOL_RESULT:
            content = event.body["content"]
            assert isinstance(content, list)
            assert event.body["tool_use_id"] not in found
            found[str(event.body["tool_use_id"])] = str(content[0].get("text"))  # pyrefly: ignore[missing-attribute]
    return found


def confirm(runner: SessionRunner, event_id: str, result: str, **more: Json) -> None:
    body: JsonObject = {"tool_use_id": event_id, "result": result, **more}
    runner.log.events.append(Event(ev.USER_TOOL_CONFIRMATION, body))


async def test_a_denied_call_has_no_effect_and_reports_the_reason(runner: SessionRunner) -> None:
    runner.gate.outcomes = {X: Gated.DENY}
    runner.begin_turn("Go. [[script:three]]")
    assert (await runner.run_attempt()).text == "Done."
    assert count_runs(runner) == {"y": 1, "z": 1}
    denied = list_calls(runner)[0]
    assert denied.body["evaluated_permission"] == "deny"
    assert "of the project" in map_results(runner)[denied.id]
    assert len(map_results(runner)) == 3


@pytest.mark.parametrize("which", ["one", "read", "write"])
async def test_a_call_that_requires_approval_parks_the_turn_and_runs_once(runner: SessionRunner, which: str) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK, "Write": Gated.ASK}
    runner.begin_turn(f"Go. [[script:{which}]]")
    parked = await runner.run_attempt()
    (asked,) = list_calls(runner)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (asked.id,))
    requests = len(runner.model.requests())
    assert not count_runs(runner)
    assert not map_results(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.run_attempt()).text == "Done."
    assert len(runner.model.requests()) == requests + 1
    assert count_runs(runner) == ({"x": 1} if which == "one" else {})
    assert (runner.folder / "host" / "work" / "new.txt").exists() == (which == "write")
    assert len(map_results(runner)) == 1


async def test_all_pending_calls_of_a_response_are_decided_separately(runner: SessionRunner) -> None:
    runner.gate.outcomes = {X: Gated.ASK, Z: Gated.ASK}
    runner.begin_turn("Go. [[script:three]]")
    parked = await runner.run_attempt()
    first, second, third = list_calls(runner)
    assert parked.pending == (first.id, third.id)
    assert count_runs(runner) == {"y": 1}
    confirm(runner, third.id, "deny", deny_message="not on a Sunday")
    assert (await runner.run_attempt()).pending == (first.id,)
    assert count_runs(runner) == {"y": 1}
    confirm(runner, first.id, "allow")
    assert (await runner.run_attempt()).text == "Done."
    assert count_runs(runner) == {"x": 1, "y": 1}
    assert "not on a Sunday" in map_results(runner)[third.id]
    assert map_results(runner).keys() == {first.id, second.id, third.id}


async def test_a_new_message_denies_pending_calls(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.begin_turn("Go. [[script:one]]")
    await runner.run_attempt()
    (asked,) = list_calls(runner)
    runner.begin_turn("Go. [[script:next]]")
    assert (await runner.run_attempt()).text == "Heard."
    assert not count_runs(runner)
    assert "new message" in map_results(runner)[asked.id]


async def test_a_crash_in_an_approved_call_makes_its_outcome_unknown(
    runner: SessionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last attempt stops where it would start a CLI. By then, every call has a result."""
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.begin_turn("Go. [[script:one]]")
    await runner.run_attempt()
    (asked,) = list_calls(runner)
    confirm(runner, asked.id, "allow")

    async def crash_before_commit(point: str) -> None:
        if point == "before_result_commit":
            raise Crash

    async def crash_instead(*_: object, **__: object) -> NoReturn:
        raise Crash

    monkeypatch.setattr(failpoints, "hit", crash_before_commit)
    with pytest.raises(Crash):
        await runner.run_attempt()
    assert (count_runs(runner), map_results(runner)) == ({"x": 1}, {})
    monkeypatch.undo()
    monkeypatch.setattr(CliConnection, "start", crash_instead)
    with pytest.raises(Crash):
        await runner.run_attempt()
    assert count_runs(runner) == {"x": 1}
    assert map_results(runner) == {asked.id: UNKNOWN}
    assert not Transcript(runner.log.entries).open_calls()


async def test_rules_that_changed_meanwhile_deny_an_approved_call(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.begin_turn("Go. [[script:one]]")
    await runner.run_attempt()
    (asked,) = list_calls(runner)
    confirm(runner, asked.id, "allow")
    runner.gate.outcomes = {"Bash": Gated.DENY}
    assert (await runner.run_attempt()).text == "Done."
    assert not count_runs(runner)
    assert map_results(runner)[asked.id].startswith("Denied by")


async def test_an_approved_call_that_the_worker_cannot_run_reports_why(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Grep": Gated.ASK}
    runner.begin_turn("Go. [[script:grep]]")
    await runner.run_attempt()
    (asked,) = list_calls(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.run_attempt()).text == "Done."
    assert "does not support these parameters after a wait for approval: -i" in map_results(runner)[asked.id]


async def test_a_user_changes_the_input(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.begin_turn("Go. [[script:one]]")
    await runner.run_attempt()
    (asked,) = list_calls(runner)
    confirm(runner, asked.id, "allow", updated_input={"command": Y})
    assert (await runner.run_attempt()).text == "Done."
    assert count_runs(runner) == {"y": 1}
    assert runner.gate.calls[-1] == ("Bash", {"command": Y})
    assert Y in map_results(runner)[asked.id]


async def test_each_call_runs_in_the_directory_that_was_evaluated(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": Gated.ASK}
    runner.begin_turn("Go. [[script:moves]]")
    await runner.run_attempt()
    moves, makes, lists = list_calls(runner)
    confirm(runner, moves.id, "allow")
    confirm(runner, makes.id, "allow")
    confirm(runner, lists.id, "allow", updated_input={"command": "pwd"})
    assert (await runner.run_attempt()).text == "Done."
    assert count_runs(runner) == {"x": 1}
    assert (runner.folder / "host" / "work" / "sub").is_dir()
    assert map_results(runner).keys() == {moves.id, makes.id, lists.id}
