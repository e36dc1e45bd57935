"""The gate in front of the real CLI: denied calls have no effect, asked ones wait without a process and run once."""

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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path)
        yield desk
        await desk.close()


def ran(desk: Desk) -> dict[str, int]:
    root = desk.folder / "host" / "work"
    return {name: len((root / name).read_text().split()) for name in ("x", "y", "z") if (root / name).exists()}


def uses(desk: Desk) -> list[Event]:
    return [event for event in desk.log.events if event.type == ev.AGENT_TOOL_USE]


def results(desk: Desk) -> dict[str, str]:
    found = {}
    for event in desk.log.events:
        if event.type == ev.AGENT_TOOL_RESULT:
            content = event.body["content"]
            assert isinstance(content, list)
            assert event.body["tool_use_id"] not in found
            found[str(event.body["tool_use_id"])] = str(content[0].get("text"))  # type: ignore[union-attr]
    return found


def confirm(desk: Desk, event_id: str, result: str, **more: Json) -> None:
    body: JsonObject = {"tool_use_id": event_id, "result": result, **more}
    desk.log.events.append(Event(ev.USER_TOOL_CONFIRMATION, body))


async def test_a_denied_call_has_no_effect_and_says_why(desk: Desk) -> None:
    desk.gate.words = {X: Gated.DENY}
    desk.next_turn("Go. [[script:three]]")
    assert (await desk.try_it()).text == "Done."
    assert ran(desk) == {"y": 1, "z": 1}
    denied = uses(desk)[0]
    assert denied.body["evaluated_permission"] == "deny"
    assert "of the project" in results(desk)[denied.id]
    assert len(results(desk)) == 3


@pytest.mark.parametrize("which", ["one", "read", "write"])
async def test_an_ask_parks_and_goes_on_once(desk: Desk, which: str) -> None:
    desk.gate.words = {"Bash": Gated.ASK, "Write": Gated.ASK}
    desk.next_turn(f"Go. [[script:{which}]]")
    parked = await desk.try_it()
    (asked,) = uses(desk)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (asked.id,))
    requests = len(desk.model.requests())
    assert not ran(desk)
    assert not results(desk)
    confirm(desk, asked.id, "allow")
    assert (await desk.try_it()).text == "Done."
    assert len(desk.model.requests()) == requests + 1
    assert ran(desk) == ({"x": 1} if which == "one" else {})
    assert (desk.folder / "host" / "work" / "new.txt").exists() == (which == "write")
    assert len(results(desk)) == 1


async def test_all_asks_of_a_message_are_shown_and_answered_apart(desk: Desk) -> None:
    desk.gate.words = {X: Gated.ASK, Z: Gated.ASK}
    desk.next_turn("Go. [[script:three]]")
    parked = await desk.try_it()
    first, second, third = uses(desk)
    assert parked.pending == (first.id, third.id)
    assert ran(desk) == {"y": 1}
    confirm(desk, third.id, "deny", deny_message="not on a Sunday")
    assert (await desk.try_it()).pending == (first.id,)
    assert ran(desk) == {"y": 1}
    confirm(desk, first.id, "allow")
    assert (await desk.try_it()).text == "Done."
    assert ran(desk) == {"x": 1, "y": 1}
    assert "not on a Sunday" in results(desk)[third.id]
    assert results(desk).keys() == {first.id, second.id, third.id}


async def test_a_new_message_denies_what_waits(desk: Desk) -> None:
    desk.gate.words = {"Bash": Gated.ASK}
    desk.next_turn("Go. [[script:one]]")
    await desk.try_it()
    (asked,) = uses(desk)
    desk.next_turn("Go. [[script:next]]")
    assert (await desk.try_it()).text == "Heard."
    assert not ran(desk)
    assert "new message" in results(desk)[asked.id]


async def test_a_crash_in_an_allowed_call_leaves_it_unknown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt ends where it would start a CLI: by then, every call has a result."""
    desk.gate.words = {"Bash": Gated.ASK}
    desk.next_turn("Go. [[script:one]]")
    await desk.try_it()
    (asked,) = uses(desk)
    confirm(desk, asked.id, "allow")

    async def crash_before_commit(point: str) -> None:
        if point == "before_result_commit":
            raise Crash

    async def crash_instead(*_: object, **__: object) -> NoReturn:
        raise Crash

    monkeypatch.setattr(failpoints, "hit", crash_before_commit)
    with pytest.raises(Crash):
        await desk.try_it()
    assert (ran(desk), results(desk)) == ({"x": 1}, {})
    monkeypatch.undo()
    monkeypatch.setattr(Connection, "open", crash_instead)
    with pytest.raises(Crash):
        await desk.try_it()
    assert ran(desk) == {"x": 1}
    assert results(desk) == {asked.id: UNKNOWN}
    assert not Transcript(desk.log.entries).open_calls()


async def test_rules_that_changed_meanwhile_deny_what_a_person_allowed(desk: Desk) -> None:
    desk.gate.words = {"Bash": Gated.ASK}
    desk.next_turn("Go. [[script:one]]")
    await desk.try_it()
    (asked,) = uses(desk)
    confirm(desk, asked.id, "allow")
    desk.gate.words = {"Bash": Gated.DENY}
    assert (await desk.try_it()).text == "Done."
    assert not ran(desk)
    assert results(desk)[asked.id].startswith("Denied by")


async def test_what_cannot_be_made_later_says_so(desk: Desk) -> None:
    desk.gate.words = {"Grep": Gated.ASK}
    desk.next_turn("Go. [[script:grep]]")
    await desk.try_it()
    (asked,) = uses(desk)
    confirm(desk, asked.id, "allow")
    assert (await desk.try_it()).text == "Done."
    assert "does not support -i" in results(desk)[asked.id]


async def test_a_person_changes_the_input(desk: Desk) -> None:
    desk.gate.words = {"Bash": Gated.ASK}
    desk.next_turn("Go. [[script:one]]")
    await desk.try_it()
    (asked,) = uses(desk)
    confirm(desk, asked.id, "allow", updated_input={"command": Y})
    assert (await desk.try_it()).text == "Done."
    assert ran(desk) == {"y": 1}
    assert desk.gate.asked[-1] == ("Bash", {"command": Y})
    assert Y in results(desk)[asked.id]


async def test_each_runs_where_it_was_judged(desk: Desk) -> None:
    desk.gate.words = {"Bash": Gated.ASK}
    desk.next_turn("Go. [[script:moves]]")
    await desk.try_it()
    moves, makes, lists = uses(desk)
    confirm(desk, moves.id, "allow")
    confirm(desk, makes.id, "allow")
    confirm(desk, lists.id, "allow", updated_input={"command": "pwd"})
    assert (await desk.try_it()).text == "Done."
    assert ran(desk) == {"x": 1}
    assert (desk.folder / "host" / "work" / "sub").is_dir()
    assert results(desk).keys() == {moves.id, makes.id, lists.id}
