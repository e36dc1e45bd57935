"""The gate in front of the real CLI: denied calls have no effect, pending ones wait without a process and run once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.integration.harness.claude.desk import Desk
from tests.integration.harness.twins import Crash

from footplate import failpoints
from footplate.domain import events as ev
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.transcript import Transcript
from footplate.harness.leftovers import UNKNOWN
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
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path)
        yield runner
        await runner.close()


def ran(runner: Desk) -> dict[str, int]:
    root = runner.folder / "host" / "work"
    return {name: len((root / name).read_text().split()) for name in ("x", "y", "z") if (root / name).exists()}


def uses(runner: Desk) -> list[Event]:
    return [event for event in runner.log.events if event.type == ev.AGENT_TOOL_USE]


def results(runner: Desk) -> dict[str, str]:
    found = {}
    for event in runner.log.events:
        if event.type == ev.AGENT_TOOL_RESULT:
            content = event.body["content"]
            assert isinstance(content, list)
            assert event.body["tool_use_id"] not in found
            found[str(event.body["tool_use_id"])] = str(content[0].get("text"))  # type: ignore[union-attr]
    return found


def confirm(runner: Desk, event_id: str, result: str, **more: Json) -> None:
    body: JsonObject = {"tool_use_id": event_id, "result": result, **more}
    runner.log.events.append(Event(ev.USER_TOOL_CONFIRMATION, body))


async def test_a_denied_call_has_no_effect_and_says_why(runner: Desk) -> None:
    runner.gate.words = {X: Gated.DENY}
    runner.next_turn("Go. [[script:three]]")
    assert (await runner.try_it()).text == "Done."
    assert ran(runner) == {"y": 1, "z": 1}
    denied = uses(runner)[0]
    assert denied.body["evaluated_permission"] == "deny"
    assert "of the project" in results(runner)[denied.id]
    assert len(results(runner)) == 3


@pytest.mark.parametrize("which", ["one", "read", "write"])
async def test_an_ask_parks_and_goes_on_once(runner: Desk, which: str) -> None:
    runner.gate.words = {"Bash": Gated.ASK, "Write": Gated.ASK}
    runner.next_turn(f"Go. [[script:{which}]]")
    parked = await runner.try_it()
    (asked,) = uses(runner)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (asked.id,))
    requests = len(runner.model.requests())
    assert not ran(runner)
    assert not results(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.try_it()).text == "Done."
    assert len(runner.model.requests()) == requests + 1
    assert ran(runner) == ({"x": 1} if which == "one" else {})
    assert (runner.folder / "host" / "work" / "new.txt").exists() == (which == "write")
    assert len(results(runner)) == 1


async def test_all_asks_of_a_message_are_shown_and_answered_apart(runner: Desk) -> None:
    runner.gate.words = {X: Gated.ASK, Z: Gated.ASK}
    runner.next_turn("Go. [[script:three]]")
    parked = await runner.try_it()
    first, second, third = uses(runner)
    assert parked.pending == (first.id, third.id)
    assert ran(runner) == {"y": 1}
    confirm(runner, third.id, "deny", deny_message="not on a Sunday")
    assert (await runner.try_it()).pending == (first.id,)
    assert ran(runner) == {"y": 1}
    confirm(runner, first.id, "allow")
    assert (await runner.try_it()).text == "Done."
    assert ran(runner) == {"x": 1, "y": 1}
    assert "not on a Sunday" in results(runner)[third.id]
    assert results(runner).keys() == {first.id, second.id, third.id}


async def test_a_new_message_denies_what_waits(runner: Desk) -> None:
    runner.gate.words = {"Bash": Gated.ASK}
    runner.next_turn("Go. [[script:one]]")
    await runner.try_it()
    (asked,) = uses(runner)
    runner.next_turn("Go. [[script:next]]")
    assert (await runner.try_it()).text == "Heard."
    assert not ran(runner)
    assert "new message" in results(runner)[asked.id]


async def test_a_crash_in_an_allowed_call_leaves_it_unknown(runner: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt stops where it would start a CLI. By then, every call has a result."""
    runner.gate.words = {"Bash": Gated.ASK}
    runner.next_turn("Go. [[script:one]]")
    await runner.try_it()
    (asked,) = uses(runner)
    confirm(runner, asked.id, "allow")

    async def crash_before_commit(point: str) -> None:
        if point == "before_result_commit":
            raise Crash

    async def crash_instead(*_: object, **__: object) -> NoReturn:
        raise Crash

    monkeypatch.setattr(failpoints, "hit", crash_before_commit)
    with pytest.raises(Crash):
        await runner.try_it()
    assert (ran(runner), results(runner)) == ({"x": 1}, {})
    monkeypatch.undo()
    monkeypatch.setattr(Connection, "open", crash_instead)
    with pytest.raises(Crash):
        await runner.try_it()
    assert ran(runner) == {"x": 1}
    assert results(runner) == {asked.id: UNKNOWN}
    assert not Transcript(runner.log.entries).open_calls()


async def test_rules_that_changed_meanwhile_deny_what_a_person_allowed(runner: Desk) -> None:
    runner.gate.words = {"Bash": Gated.ASK}
    runner.next_turn("Go. [[script:one]]")
    await runner.try_it()
    (asked,) = uses(runner)
    confirm(runner, asked.id, "allow")
    runner.gate.words = {"Bash": Gated.DENY}
    assert (await runner.try_it()).text == "Done."
    assert not ran(runner)
    assert results(runner)[asked.id].startswith("Denied by")


async def test_what_cannot_be_made_later_says_so(runner: Desk) -> None:
    runner.gate.words = {"Grep": Gated.ASK}
    runner.next_turn("Go. [[script:grep]]")
    await runner.try_it()
    (asked,) = uses(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.try_it()).text == "Done."
    assert "does not support -i" in results(runner)[asked.id]


async def test_a_person_changes_the_input(runner: Desk) -> None:
    runner.gate.words = {"Bash": Gated.ASK}
    runner.next_turn("Go. [[script:one]]")
    await runner.try_it()
    (asked,) = uses(runner)
    confirm(runner, asked.id, "allow", updated_input={"command": Y})
    assert (await runner.try_it()).text == "Done."
    assert ran(runner) == {"y": 1}
    assert runner.gate.asked[-1] == ("Bash", {"command": Y})
    assert Y in results(runner)[asked.id]


async def test_each_runs_where_it_was_judged(runner: Desk) -> None:
    runner.gate.words = {"Bash": Gated.ASK}
    runner.next_turn("Go. [[script:moves]]")
    await runner.try_it()
    moves, makes, lists = uses(runner)
    confirm(runner, moves.id, "allow")
    confirm(runner, makes.id, "allow")
    confirm(runner, lists.id, "allow", updated_input={"command": "pwd"})
    assert (await runner.try_it()).text == "Done."
    assert ran(runner) == {"x": 1}
    assert (runner.folder / "host" / "work" / "sub").is_dir()
    assert results(runner).keys() == {moves.id, makes.id, lists.id}
