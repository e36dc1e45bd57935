"""A transcript is imported as the start of a session: once, completely, with large lines, and ready to be forked."""

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from footplate.domain import events, ids
from footplate.domain.errors import NotFound
from footplate.domain.events import Event
from footplate.domain.ports import Entry
from footplate.domain.principals import Principal
from footplate.domain.services import Arrival, EventPage
from footplate.domain.transcripts import Origin, Piece
from footplate.domain.turns import Session
from footplate.store import imports

from .cell import AGENT, Cell, somebody, text_of

_ALL = EventPage(limit=1000)
_THEN = datetime(2026, 1, 2, tzinfo=UTC)
_LARGE = "x" * 100_000


def _pieces(count: int) -> Iterator[Piece]:
    for number in range(count):
        said = Event(events.USER_MESSAGE, {"content": [events.text_block(f"Line {number}")]})
        yield Piece([Entry("claude", {"n": number, "large": _LARGE if number == 1 else ""})], [said], _THEN)
        yield Piece([Entry("claude", {"silent": number})])


async def _import(cell: Cell, who: Principal, name: str, count: int = 3) -> Session:
    async with cell.units.unit(who, None) as unit:
        called = ids.new_id("name")
        place = await unit.create_environment(who, name=called, description=None, config={}, metadata={})
    async with cell.units.unit(who, None) as unit:
        arrival = Arrival(
            digest=hashlib.sha256(name.encode()).digest(), origin=Origin("theirs", "2.1"), pieces=_pieces(count)
        )
        session, _ = await unit.import_session(
            who, arrival, agent=AGENT, environment_id=place.id, title=None, metadata={}, context={}
        )
    return session


async def _conversation(cell: Cell, who: Principal, session_id: str) -> list[Entry]:
    return [entry async for entry in cell.reads.conversation(who, session_id)]


async def test_a_history_and_then_a_turn(cell: Cell) -> None:
    who = somebody()
    session = await _import(cell, who, "one", 250)
    rows = await cell.reads.events(who, session.id, _ALL)
    assert [row.seq for row in rows] == [*range(1, 252)]
    assert [text_of(row) for row in rows[:2]] == ["Line 0", "Line 1"]
    assert (rows[0].processed_at, rows[-1].event.type) == (_THEN, events.STATUS_IDLE)
    assert rows[-1].event.body["imported_from"] == {"transcript_id": "theirs", "version": "2.1"}
    kept = await _conversation(cell, who, session.id)
    assert len(kept) == 500
    assert kept[2].body == {"n": 1, "large": _LARGE}
    await cell.send(who, session.id, "Go on.")
    claim = await cell.claim(session.id, who)
    assert await cell.turns.entries(claim, 0) == kept


async def test_the_same_is_the_same_session_at_once_and_later(cell: Cell) -> None:
    who, other = somebody(), somebody()
    first, second = await asyncio.gather(_import(cell, who, "same"), _import(cell, who, "same"))
    assert first.id == second.id == (await _import(cell, who, "same")).id
    assert len(await _conversation(cell, who, first.id)) == 6
    assert (await _import(cell, other, "same")).id != first.id
    assert (await _import(cell, who, "more")).id != first.id
    await cell.delete(who, first.id)
    again = await _import(cell, who, "same")
    assert again.id != first.id
    assert len(await _conversation(cell, who, again.id)) == 6


async def test_a_fork_in_the_middle(cell: Cell) -> None:
    who = somebody()
    session = await _import(cell, who, "forked")
    fork = await cell.fork(who, session.id, 2)
    kept = await _conversation(cell, who, fork.id)
    assert [entry.body.get("n", "silent") for entry in kept] == [0, "silent", 1]


async def test_nobody_elses(cell: Cell) -> None:
    session = await _import(cell, somebody(), "mine")
    with pytest.raises(NotFound):
        await _conversation(cell, somebody(), session.id)


def test_large_lines_are_stored_a_few_at_a_time() -> None:
    large = (Piece([Entry("claude", {"large": "x" * (1 << 20)})]) for _ in range(12))
    assert [len(imports._next_pieces(large)) for _ in range(4)] == [4, 4, 4, 0]
    assert len(imports._next_pieces(_pieces(300))) == 200
