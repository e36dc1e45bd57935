"""The feed of an organisation: every change once, in an order in which a later commit has a higher position."""

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import get_args

import pytest

from footplate.api.wire.session.events import EventType
from footplate.domain import ids
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Order
from footplate.domain.ports.api import EventPage
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.feed import FeedChange, is_change, to_wire
from footplate.store.log.feed import Feed, FeedExpiry
from footplate.store.retention.expiry import SessionExpiry

from .archivable_session import INACTIVE_AFTER, create_archivable_session
from .cell import COMPLETED, Cell, custom_tool_call, types
from .test_approvals import use

ALL = 10_000
ORDERS: tuple[Order, ...] = ("asc", "desc")
ASK = use("toolu_1")


def _feed(cell: Cell) -> Feed:
    return Feed(cell.database, cell.reads.positions)


async def read_feed(cell: Cell, principal: Principal, after: int = 0) -> Sequence[FeedChange]:
    feed = _feed(cell)
    await feed.number_changes([principal.organisation])
    return await feed.read_changes(principal.organisation, after, ALL)


def _types(changes: Sequence[FeedChange]) -> list[str | None]:
    return [change.event.event.type if change.event else None for change in changes]


async def append_events(cell: Cell, principal: Principal, session_id: str, *new: Event) -> None:
    """Appends events directly to the log, as a future writer might."""
    async with cell.database.transaction() as connection:
        seq = await connection.fetchval(
            "update session_heads set seq = seq + $2 where session_id = $1 returning seq", session_id, len(new)
        )
        await connection.executemany(
            "insert into events (session_id, seq, organisation, event_id, type, body, entries)"
            " values ($1, $2, $3, $4, $5, $6, 0)",
            [
                (session_id, seq - len(new) + n, principal.organisation, event.id, event.type, event.body)
                for n, event in enumerate(new, start=1)
            ],
        )


@pytest.mark.requirement("O10")
async def test_a_session_reports_its_changes_in_order(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "hello")
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [events.message("Not a change."), ASK, custom_tool_call()])
    await cell.turns.finish(claim, COMPLETED)
    changes = await read_feed(cell, principal)
    assert _types(changes) == [
        "session.created",
        "session.status_running",
        "agent.tool_use",
        "agent.custom_tool_use",
        "session.status_idle",
    ]
    assert [change.position for change in changes] == [1, 2, 3, 4, 5]
    wire = to_wire(changes[2])
    log = {item.event.id: item for item in await cell.positions(session_id, principal)}
    assert wire == events.to_wire(log[ASK.id]) | {
        "session_id": session_id,
        "session_position": log[ASK.id].seq,
        "session_title": None,
    }
    assert [await read_feed(cell, principal, after) for after in range(6)] == [changes[after:] for after in range(6)]


async def test_the_triggers_choose_the_same_events_as_the_domain(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    event_types = [*get_args(EventType), "step.started", "question.asked", "batch.ended", "steps", "session.deleted"]
    bodies: list[dict[str, str]] = [{}, {"evaluated_permission": "ask"}, {"evaluated_permission": "allow"}]
    new = [Event(event_type, {**body}) for event_type in event_types for body in bodies]
    await append_events(cell, principal, session_id, *new)
    found = [change.event.event.id for change in await read_feed(cell, principal) if change.event]
    # A deletion is reported when the session's row is deleted.
    assert found[1:] == [
        event.id for event in new if is_change(event.type, event.body) and event.type != "session.deleted"
    ]


@pytest.mark.requirement("O10")
async def test_a_later_commit_has_a_higher_position(cell: Cell, principal: Principal) -> None:
    """Transactions that started earlier commit later, while two processes number: a reader that resumes at its last
    position never misses a change.
    """
    first, second = await cell.session(principal), await cell.session(principal)
    feed = _feed(cell)
    seen = [change.position for change in await read_feed(cell, principal)]
    insert = (
        "insert into events (session_id, seq, organisation, event_id, type, body, entries) "
        "values ($1, $2, $3, $4, 'session.error', '{}', 0)"
    )
    async with cell.database.connection() as slow, cell.database.connection() as fast:
        for number in range(1, 20):
            transaction = slow.transaction()
            await transaction.start()
            await slow.execute(insert, first, number, principal.organisation, ids.new_id(ids.EVENT))
            await fast.execute(insert, second, number, principal.organisation, ids.new_id(ids.EVENT))
            heads = await asyncio.gather(*(feed.number_changes([principal.organisation]) for _ in range(2)))
            seen += [c.position for c in await feed.read_changes(principal.organisation, seen[-1], ALL)]
            assert {head[principal.organisation] for head in heads} == {seen[-1]}
            await transaction.commit()
            await feed.number_changes([principal.organisation])
            seen += [c.position for c in await feed.read_changes(principal.organisation, seen[-1], ALL)]
    assert seen == list(range(1, 2 + 2 * 19 + 1))


@pytest.mark.timing
async def test_concurrent_writers_and_numberers_skip_and_repeat_nothing(cell: Cell, principal: Principal) -> None:
    sessions = [await cell.session(principal) for _ in range(4)]
    writing = True
    received: list[list[FeedChange]] = [[], []]

    async def write(session_id: str, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(15):
            await append_events(
                cell, principal, session_id, *(events.status_running() for _ in range(chance.randint(1, 3)))
            )
            await asyncio.sleep(chance.random() * 0.003)

    async def read(changes: list[FeedChange]) -> None:
        while True:
            is_last = not writing
            changes += await read_feed(cell, principal, changes[-1].position if changes else 0)
            if is_last:
                return

    readers = [asyncio.create_task(read(changes)) for changes in received]
    await asyncio.gather(*(write(session_id, number) for number, session_id in enumerate(sessions)))
    writing = False
    await asyncio.gather(*readers)
    assert received[0] == received[1]
    assert [change.position for change in received[0]] == list(range(1, len(received[0]) + 1))
    for session_id in sessions:
        own = [change.event.seq for change in received[0] if change.session_id == session_id and change.event]
        assert own == list(range(len(own)))
        assert len(own) == 1 + (await cell.head(session_id))["seq"]


async def test_rows_of_a_session_are_numbered_by_seq_whatever_order_they_were_inserted_in(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal)
    async with cell.database.connection() as connection:
        await connection.execute(
            "insert into events (session_id, seq, organisation, event_id, type, body, entries) "
            "select $1, n, $2, 'sevt_' || n, 'session.error', '{}', 0 from generate_series(9, 1, -1) n",
            session_id,
            principal.organisation,
        )
    assert [change.event.seq for change in await read_feed(cell, principal) if change.event] == list(range(10))


async def test_a_rolled_back_change_is_not_reported(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    cell.database.lose_next_commit = True
    with pytest.raises(Exception, match="database"):
        await append_events(cell, principal, session_id, events.status_running())
    assert _types(await read_feed(cell, principal)) == ["session.created"]


async def test_of_a_deleted_session_only_its_deletion_remains(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await append_events(cell, principal, session_id, events.status_idle({"type": "end_turn"}))
    async with cell.units.unit(principal, None) as unit:
        deleted = await unit.delete_session(principal, session_id)
    gone = await read_feed(cell, principal)
    assert _types(gone) == ["session.created", None, "session.deleted"]
    assert [change.audience is None for change in gone] == [True, True, False]
    assert gone[-1].event is not None
    assert gone[-1].event.event.id == deleted.positions[0].event.id
    assert gone[-1].event.seq == deleted.positions[0].seq
    assert gone[-1].audience is not None
    assert (gone[-1].audience.owner_id, gone[-1].audience.visible_to) == (principal.id, "organisation")


async def test_an_expired_session_is_reported_as_deleted(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal, 1)
    await session.make_old()
    await SessionExpiry(cell.database, INACTIVE_AFTER)._handle_if_due(principal.organisation, session.id)
    last = (await read_feed(cell, principal))[-1]
    assert (_types([last]), last.session_id) == (["session.deleted"], session.id)


async def test_archiving_is_reported_once_after_the_earlier_changes(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await append_events(cell, principal, session_id, events.status_running(), events.status_idle({"type": "end_turn"}))
    for _ in range(2):
        async with cell.units.unit(principal, None) as unit:
            _, accepted = await unit.archive_session(principal, session_id)
        assert accepted.changes_feed
    changes = await read_feed(cell, principal)
    assert _types(changes) == ["session.created", "session.status_running", "session.status_idle", "session.archived"]
    assert to_wire(changes[-1])["session_position"] == 2


async def test_changes_of_an_archived_session_are_read_from_its_archive(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal, 1)
    before = await read_feed(cell, principal)
    await session.archive()
    assert not await cell.rows("events", session.id)
    assert [to_wire(change) for change in await read_feed(cell, principal)] == [to_wire(change) for change in before]


async def test_old_changes_are_deleted_from_the_start_of_the_feed(cell: Cell, principal: Principal) -> None:
    """Positions never have a gap, although the times of the changes are not in their order."""
    session_id = await cell.session(principal)
    await append_events(cell, principal, session_id, *(events.status_running() for _ in range(5)))
    async with cell.database.connection() as connection:
        # Not numbered yet: the sweep numbers changes of a feed without a reader.
        for seq, days in ((0, 9), (1, 8), (2, 1), (3, 9), (4, 0), (5, 0)):
            await connection.execute(
                "update feed_pending set created_at = now() - $3 * interval '1 day' where session_id = $1 and seq = $2",
                session_id,
                seq,
                days,
            )
    await FeedExpiry(cell.database, timedelta(days=7)).run()
    assert [change.position for change in await _feed(cell).read_changes(principal.organisation, 0, ALL)] == [
        3,
        4,
        5,
        6,
    ]
    await FeedExpiry(cell.database, timedelta(seconds=0)).run()
    assert (await _feed(cell).number_changes([principal.organisation])) == {principal.organisation: 6}
    await append_events(cell, principal, session_id, events.status_running())
    assert [change.position for change in await read_feed(cell, principal)] == [7]


@pytest.mark.requirement("O10")
async def test_extension_events_are_listed_on_request(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await append_events(cell, principal, session_id, Event("step.queued", {"name": "build"}), events.status_running())
    pages = [EventPage(limit=9, order=order, with_extensions=flag) for order in ORDERS for flag in (False, True)]
    found = [types(await cell.reads.events(principal, session_id, page)) for page in pages]
    assert found == [
        ["session.status_running"],
        ["step.queued", "session.status_running"],
        ["session.status_running"],
        ["session.status_running", "step.queued"],
    ]
