"""Stored tool calls with their inputs, newest first, and the rules of their sessions."""

from datetime import UTC, datetime, timedelta

from footplate.domain.permissions import Layer, Outcome
from footplate.domain.principals import Principal
from footplate.domain.replays import CallFilter, StoredCall

from .cell import Cell, somebody
from .test_audit import decide


async def _calls(cell: Cell, who: Principal, *, limit: int = 50, **where: object) -> list[StoredCall]:
    return [*await cell.reads.calls(who, CallFilter(**where), limit=limit, after=None)]  # type: ignore[arg-type]


async def test_calls_come_with_their_inputs_newest_first(cell: Cell) -> None:
    who = somebody()
    first = await decide(cell, who, "rm a", "rm b")
    second = await decide(cell, who, "rm c")
    found = await _calls(cell, who)
    assert [one.input for one in found] == [{"command": "rm c"}, {"command": "rm b"}, {"command": "rm a"}]
    assert [one.session_id for one in found] == [second, first, first]
    assert {(one.name, one.server, one.was) for one in found} == {("bash", None, Outcome.DENY)}
    assert await _calls(cell, somebody()) == []


async def test_pages_and_filters(cell: Cell) -> None:
    who = somebody()
    first = await decide(cell, who, "a", "b", "c")
    await decide(cell, who, "d")
    page = await _calls(cell, who, limit=2)
    rest = await cell.reads.calls(who, CallFilter(), limit=9, after=(page[-1].created_at, page[-1].id))
    assert [one.input for one in (*page, *rest)] == [{"command": text} for text in "dcba"]
    assert len(await _calls(cell, who, session_id=first)) == 3
    assert await _calls(cell, who, project_id="proj_none") == []
    now = datetime.now(UTC)
    assert await _calls(cell, who, since=now + timedelta(hours=1)) == []
    assert len(await _calls(cell, who, since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 4


async def test_of_a_deleted_session_nothing_is_left_but_that_there_was_a_call(cell: Cell) -> None:
    who = somebody()
    session_id = await decide(cell, who, "rm a")
    async with cell.units.unit(who, None) as unit:
        await unit.delete_session(who, session_id)
    await cell.reads.rules_of(who, [session_id])
    (left,) = await _calls(cell, who)
    assert (left.input, left.name) == (None, "bash")
    assert await cell.reads.rules_of(who, [session_id]) == {}


async def test_the_rules_of_sessions(cell: Cell) -> None:
    who = somebody()
    session_id = await decide(cell, who, "rm a")
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, {"deny": ["Bash(rm *)"]})
    found = await cell.reads.rules_of(who, [session_id, "sesn_none"])
    assert [*found] == [session_id]
    layers = dict(found[session_id].layers)
    assert (layers[Layer.ORGANISATION], layers[Layer.SESSION]) == ({"deny": ["Bash(rm *)"]}, {})
    assert await cell.reads.rules_of(somebody(), [session_id]) == {}
