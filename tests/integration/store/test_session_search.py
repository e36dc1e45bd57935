"""Sessions are found by their words, by those who can see them, until they are archived or deleted."""

from dataclasses import replace

from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.text.search_tokens import parse_search
from footplate.store.resources.session_search import SearchIndexing

from .archivable_session import create_archivable_session
from .cell import COMPLETED, Cell, new_principal


async def _index(cell: Cell) -> None:
    """Indexes what all tests have left: the time of one sweep may not suffice."""
    while await cell.database.fetch("number_backlog"):
        pass
    while await cell.database.fetch("search_backlog"):
        await SearchIndexing(cell.database, cell.objects).run()


async def _find(cell: Cell, principal: Principal, text: str) -> list[str]:
    where = SessionFilter(terms=parse_search(text))
    found = [each.id for each in await cell.reads.sessions(principal, Page(limit=10), where)]
    assert sum((await cell.reads.count_sessions(principal, Page(limit=0), where)).values()) == len(found)
    return found


async def test_a_session_is_found_by_title_message_and_path(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "Fix the median of parser.py")
    other = await cell.session(principal, "something else")
    await _index(cell)
    for text in ("median", "MED", "fix parser.py", '"the median"', session_id):
        assert await _find(cell, principal, text) == [session_id]
    for text in ("median else", '"med"', "!", "absent"):
        assert await _find(cell, principal, text) == []
    claim = await cell.claim(session_id, principal)
    write = events.tool_use("write", {"file_path": "/w/quantile.py", "content": "hidden"}, call_id="1")
    reply = Event("agent.message", {"content": [{"type": "text", "text": "Answered"}]})
    await cell.turns.append(claim, [write, reply])
    await cell.turns.finish(claim, COMPLETED)
    async with cell.units.unit(principal, None) as unit:
        await unit.update_session(principal, other, lambda session: replace(session, title="Renamed quantile"))
    await _index(cell)
    await _index(cell)
    assert await _find(cell, principal, "median answ quantile") == [session_id]
    assert {*await _find(cell, principal, "quantile")} == {session_id, other}
    assert await _find(cell, principal, "hidden") == []
    assert await _find(cell, new_principal(), "median") == []


async def test_archiving_and_deletion_remove_the_index_rows(cell: Cell, principal: Principal) -> None:
    archived, deleted = [await cell.session(principal, "needle") for _ in range(2)]
    await _index(cell)
    assert {*await _find(cell, principal, "needle")} == {archived, deleted}
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, archived)
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, deleted)

    async def rows() -> int:
        async with cell.database.connection() as connection:
            found = await connection.fetch(
                "select from search_documents where session_id = any($1)", [archived, deleted]
            )
            return len(found)

    assert await rows() == 0
    await _index(cell)
    assert await rows() == 0


async def test_a_feed_that_is_too_short_starts_a_walk(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "forgotten")
    while await cell.database.fetch("number_backlog"):
        pass
    async with cell.database.connection() as connection:
        await connection.execute("delete from feed where organisation = $1", principal.organisation)
    await _index(cell)
    while await cell.database.fetch("search_walk", 1):
        await SearchIndexing(cell.database, cell.objects).run()
    assert await _find(cell, principal, "forgotten") == [session_id]


async def test_a_session_with_very_many_tokens_is_found_by_each(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    letters = [chr(0x20000 + number) for number in range(6000)]  # four bytes each in UTF-8
    for start in range(0, len(letters), 300):
        text = " ".join(letter * 64 for letter in letters[start : start + 300])
        await cell.turns.append(claim, [Event("agent.message", {"content": [{"type": "text", "text": text}]})])
    later = await cell.session(principal, "afterwards")
    await _index(cell)
    for letter in (letters[0], letters[4500]):
        assert await _find(cell, principal, letter * 64) == [session_id]
    assert await _find(cell, principal, "afterwards") == [later]


async def test_messages_in_a_log_archive_are_indexed(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal, 1)
    await session.archive()
    assert len(session.archives) == 1
    claim = await cell.claim(await _say(cell, principal, session.id, "latest"), principal)
    await cell.turns.finish(claim, COMPLETED)
    await _index(cell)
    assert await _find(cell, principal, "steer latest") == [session.id]


async def test_a_missing_object_does_not_stop_the_index(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    large = "early " + "word " * 100_000
    await cell.turns.append(claim, [Event("agent.message", {"content": [{"type": "text", "text": large}]})])
    later = await cell.session(principal, "afterwards")
    for path in (cell.folder / principal.organisation / session_id).rglob("body_*"):
        path.unlink()
    await _index(cell)
    assert await _find(cell, principal, "early") == [session_id]
    assert await _find(cell, principal, "afterwards") == [later]


async def _say(cell: Cell, principal: Principal, session_id: str, text: str) -> str:
    await cell.send(principal, session_id, text)
    return session_id
