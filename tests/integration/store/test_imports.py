"""A transcript is imported as the start of a session: once, completely, with large lines, and ready to be forked."""

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience, Visibility
from footplate.domain.ports.api import EventPage, TranscriptImport
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.transcript_exchange import ImportedLine, TranscriptOrigin
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import Session
from footplate.store.log import transcript_import

from .cell import AGENT, Cell, new_principal, text_of

_ALL = EventPage(limit=1000)
_THEN = datetime(2026, 1, 2, tzinfo=UTC)
_LARGE = "x" * 100_000


def _lines(count: int) -> Iterator[ImportedLine]:
    for number in range(count):
        message = Event(events.USER_MESSAGE, {"content": [events.text_block(f"Line {number}")]})
        yield ImportedLine([Entry("claude", {"n": number, "large": _LARGE if number == 1 else ""})], [message], _THEN)
        yield ImportedLine([Entry("claude", {"silent": number})])


async def _import(
    cell: Cell, principal: Principal, name: str, count: int = 3, audience: Audience = EVERYONE
) -> Session:
    async with cell.units.unit(principal, None) as unit:
        name_of_environment = ids.new_id("name")
        environment = await unit.create_environment(
            principal, name=name_of_environment, description=None, config={}, metadata={}
        )
    async with cell.units.unit(principal, None) as unit:
        arrival = TranscriptImport(
            digest=hashlib.sha256(name.encode()).digest(),
            origin=TranscriptOrigin("theirs", "2.1"),
            pieces=_lines(count),
        )
        session, _ = await unit.import_session(
            principal,
            arrival,
            agent=AGENT,
            environment_id=environment.id,
            title=None,
            metadata={},
            context={},
            audience=audience,
        )
    return session


async def _conversation(cell: Cell, principal: Principal, session_id: str) -> list[Entry]:
    return [entry async for entry in cell.reads.conversation(principal, session_id)]


async def test_a_turn_continues_an_imported_history(cell: Cell) -> None:
    principal = new_principal()
    session = await _import(cell, principal, "one", 250)
    rows = await cell.reads.events(principal, session.id, _ALL)
    assert [row.seq for row in rows] == [*range(1, 252)]
    assert [text_of(row) for row in rows[:2]] == ["Line 0", "Line 1"]
    assert (rows[0].processed_at, rows[-1].event.type) == (_THEN, events.STATUS_IDLE)
    assert rows[-1].event.body["imported_from"] == {"transcript_id": "theirs", "version": "2.1"}
    stored = await _conversation(cell, principal, session.id)
    assert len(stored) == 500
    assert stored[2].body == {"n": 1, "large": _LARGE}
    await cell.send(principal, session.id, "Go on.")
    claim = await cell.claim(session.id, principal)
    assert await cell.turns.entries(claim, 0) == stored


async def test_importing_the_same_transcript_again_returns_the_same_session(cell: Cell) -> None:
    principal, other = new_principal(), new_principal()
    first, second = await asyncio.gather(_import(cell, principal, "same"), _import(cell, principal, "same"))
    assert first.id == second.id == (await _import(cell, principal, "same")).id
    assert len(await _conversation(cell, principal, first.id)) == 6
    assert (await _import(cell, other, "same")).id != first.id
    assert (await _import(cell, principal, "more")).id != first.id
    await cell.delete(principal, first.id)
    again = await _import(cell, principal, "same")
    assert again.id != first.id
    assert len(await _conversation(cell, principal, again.id)) == 6


async def test_an_import_can_be_forked_in_the_middle(cell: Cell) -> None:
    principal = new_principal()
    session = await _import(cell, principal, "forked")
    fork = await cell.fork(principal, session.id, 2)
    stored = await _conversation(cell, principal, fork.id)
    assert [entry.body.get("n", "silent") for entry in stored] == [0, "silent", 1]


async def test_an_import_is_not_visible_to_another_organisation(cell: Cell) -> None:
    session = await _import(cell, new_principal(), "mine")
    with pytest.raises(NotFound):
        await _conversation(cell, new_principal(), session.id)


def test_large_lines_are_stored_a_few_at_a_time() -> None:
    large = (ImportedLine([Entry("claude", {"large": "x" * (1 << 20)})]) for _ in range(12))
    assert [len(transcript_import._next_pieces(large)) for _ in range(4)] == [4, 4, 4, 0]
    assert len(transcript_import._next_pieces(_lines(300))) == 200


async def test_an_import_of_a_hidden_transcript_is_a_session_of_its_own(cell: Cell) -> None:
    ann = new_principal()
    ben = new_principal(ann.organisation)
    hidden = await _import(cell, ann, "private", audience=Audience(Visibility.PRIVATE))
    first, again = [await _import(cell, ben, "private") for _ in range(2)]
    assert hidden.id != first.id == again.id
    assert (await _import(cell, ann, "private")).id == hidden.id
