"""Pages contain each row once, in either order and direction, while rows are added. Also filters and dates."""

import itertools
from dataclasses import replace

import pytest

from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Order, Page
from footplate.domain.ports.api import EventPage, SessionFilter
from footplate.domain.sessions import events, threads
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.turns import Session, SessionStatus

from .cell import COMPLETED, Cell, interrupt
from .test_approvals import ASK

_SIZES = (1, 2, 3, 7, 20)


def _key(session: Session) -> tuple[object, str]:
    return session.created_at, session.id


async def _sessions(cell: Cell, principal: Principal, count: int) -> list[Session]:
    for _ in range(count):
        await cell.session(principal)
    # Several sessions have the same time, so the id decides between them.
    async with cell.database.connection() as connection:
        await connection.execute(
            "update sessions set created_at = date_trunc('second', created_at) where organisation = $1"
            " and right(id, 1) < 'g'",
            principal.organisation,
        )
    return sorted(await cell.reads.sessions(principal, Page(limit=1000), SessionFilter()), key=_key)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", _SIZES)
async def test_pages_of_sessions_forwards_and_back(cell: Cell, principal: Principal, order: Order, limit: int) -> None:
    expected = await _sessions(cell, principal, 17)
    if order == "desc":
        expected.reverse()

    forwards: list[Session] = []
    pages: list[list[Session]] = []
    after = None
    while page := await cell.reads.sessions(principal, Page(limit=limit, order=order, after=after), SessionFilter()):
        pages.append([*page])
        forwards += page
        after = (page[-1].created_at, page[-1].id)
    assert [item.id for item in forwards] == [item.id for item in expected]

    for earlier, later in itertools.pairwise(pages):
        before = (later[0].created_at, later[0].id)
        back = await cell.reads.sessions(principal, Page(limit=limit, order=order, before=before), SessionFilter())
        assert [item.id for item in back] == [item.id for item in earlier]


async def test_rows_added_meanwhile_change_no_page(cell: Cell, principal: Principal) -> None:
    expected = await _sessions(cell, principal, 9)
    seen: list[str] = []
    after = None
    while page := await cell.reads.sessions(principal, Page(limit=2, after=after), SessionFilter()):
        seen += [item.id for item in page]
        after = (page[-1].created_at, page[-1].id)
        await cell.session(principal)
    assert seen == [item.id for item in reversed(expected)]


async def test_filters_and_archived_sessions(cell: Cell, principal: Principal) -> None:
    idle, running, archived = [await cell.session(principal, "go") for _ in range(3)]
    await cell.claim(running, principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, archived)

    async def listed(where: SessionFilter, *, include_archived: bool = False) -> set[str]:
        page = Page(limit=10, include_archived=include_archived)
        return {item.id for item in await cell.reads.sessions(principal, page, where)}

    assert await listed(SessionFilter()) == {idle, running}
    assert await listed(SessionFilter(), include_archived=True) == {idle, running, archived}
    assert await listed(SessionFilter(statuses=[SessionStatus.RUNNING])) == {running}
    assert await listed(SessionFilter(agent_id="agent_1", agent_version=1)) == {idle, running}
    assert await listed(SessionFilter(agent_version=2)) == set()


async def test_dates_bound_a_list(cell: Cell, principal: Principal) -> None:
    sessions = await _sessions(cell, principal, 6)
    middle = sessions[3].created_at

    async def count(page: Page) -> int:
        return len(await cell.reads.sessions(principal, page, SessionFilter()))

    before = sum(item.created_at < middle for item in sessions)
    same = sum(item.created_at == middle for item in sessions)
    assert await count(Page(limit=10, created_lt=middle)) == before
    assert await count(Page(limit=10, created_lte=middle)) == before + same
    assert await count(Page(limit=10, created_gt=middle)) == 6 - before - same
    assert await count(Page(limit=10, created_gte=middle)) == 6 - before


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", _SIZES)
async def test_pages_of_events_show_each_event_once(cell: Cell, principal: Principal, order: Order, limit: int) -> None:
    session_id = await cell.session(principal, "one", "two", "three")
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [events.message(f"{n}") for n in range(5)])
    await cell.send(principal, session_id, interrupt())
    await cell.turns.finish(claim, COMPLETED)

    seen: list[Position] = []
    after = None
    while page := await cell.reads.events(principal, session_id, EventPage(limit=limit, order=order, after_seq=after)):
        seen += page
        after = page[-1].seq

    positions = await cell.positions(session_id, principal)
    first = list(dict.fromkeys(item.event.id for item in positions))
    assert [item.event.id for item in seen] == (first if order == "asc" else first[::-1])
    latest = {item.event.id: item.processed_at for item in positions}
    assert {item.event.id: item.processed_at for item in seen} == latest
    assert sum(time is None for time in latest.values()) == 2  # the second and third message


async def test_events_by_type(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    wanted = EventPage(limit=10, types=[events.STATUS_IDLE, events.USER_MESSAGE])
    listed = await cell.reads.events(principal, session_id, wanted)
    assert [item.event.type for item in listed] == [events.USER_MESSAGE, events.STATUS_IDLE]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_events_by_thread(cell: Cell, principal: Principal, order: Order) -> None:
    """A subagent's work is in its thread, its creation in the primary one, its status and its approvals in both."""
    session_id = await cell.session(principal, "one")
    async with cell.database.connection() as connection:
        asks = """update sessions set agent = agent || '{"multiagent": {}}' where id = $1"""
        await connection.execute(asks, session_id)
    claim = await cell.claim(session_id, principal)
    posed = events.tool_use("write", {"content": '"session_thread_id": "sthr_a"'}, call_id="t")
    life = [threads.created("sthr_a", "scout", "t"), threads.running("sthr_a", "scout")]
    inside = [threads.in_thread(events.message(f"{n}"), "sthr_a") for n in range(3)]
    ask = threads.call_in_thread(events.tool_use("bash", {}, call_id="u", decision=ASK), "sthr_a", "scout")
    await cell.turns.append(claim, [posed, *life, *inside, ask, threads.in_thread(events.message("b"), "sthr_b")])
    decision, _ = await cell.turns.close_approval(claim, ask.id, "nobody answered")
    await cell.turns.finish(claim, COMPLETED)

    async def listed(thread_id: str | None) -> list[str]:
        seen: list[Position] = []
        page = EventPage(limit=2, order=order, thread_id=thread_id)
        while rows := await cell.reads.events(principal, session_id, page):
            seen += rows
            page = replace(page, after_seq=rows[-1].seq)
        found = [item.event.id for item in seen if item.event.type not in {events.USER_MESSAGE, events.STATUS_RUNNING}]
        return found if order == "asc" else found[::-1]

    assert await listed("sthr_a") == [event.id for event in (life[1], *inside, ask, decision)]
    assert len(await listed("sthr_b")) == 1
    assert (await listed(None))[:-1] == [event.id for event in (posed, *life, ask, decision)]
    assert await listed("sthr_c") == []


async def test_turns_newest_first(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, *(f"{n}" for n in range(5)))
    made = []
    for _ in range(5):
        claim = await cell.claim(session_id, principal)
        made.append(claim.turn_id)
        await cell.turns.finish(claim, COMPLETED)
    newest = await cell.reads.turns(principal, session_id, limit=2, before=None)
    rest = await cell.reads.turns(principal, session_id, limit=10, before=newest[-1].id)
    assert [turn.id for turn in [*newest, *rest]] == made[::-1]
