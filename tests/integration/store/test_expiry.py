"""Unused sessions expire. A session that waits for anything does not, however long it waits."""

import asyncio
from datetime import timedelta

import pytest

from footplate.domain.files.snapshots import SCRATCH_TREE, Snapshot, StoredSnapshot, TreeSnapshot
from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions import events
from footplate.store.retention.expiry import SessionExpiry
from footplate.store.session_existence import SessionRegistry

from .archivable_session import INACTIVE_AFTER, ArchivableSession, create_archivable_session
from .cell import COMPLETED, Cell, awaiting, custom_tool_call

pytestmark = pytest.mark.timing


async def _old_session(cell: Cell, principal: Principal, *, waits: bool = False) -> ArchivableSession:
    session = ArchivableSession(cell, principal, await cell.session(principal, "hello"))
    claim = await cell.claim(session.id, principal)
    question = custom_tool_call()
    await cell.turns.append(
        claim, [question], files=[TreeSnapshot(SCRATCH_TREE, StoredSnapshot(0, Snapshot("a" * 40)))]
    )
    await cell.turns.finish(claim, awaiting(question) if waits else COMPLETED)
    await session.make_old()
    return session


async def test_only_sessions_that_wait_for_nothing_expire(cell: Cell, principal: Principal) -> None:
    idle, waits, forked, queued, young = [await _old_session(cell, principal, waits=n == 1) for n in range(5)]
    fork = await cell.fork(principal, forked.id)
    await cell.send(principal, queued.id, "one more")
    await queued.make_old()
    async with cell.database.connection() as connection:
        await connection.execute("update session_heads set wake = false where session_id = $1", queued.id)
    await young.turn("now")
    archived = await create_archivable_session(cell, principal, 1)
    await archived.archive()
    all_ids = [each.id for each in (idle, waits, forked, queued, young, archived)] + [fork.id]
    assert await SessionRegistry(cell.database).expired(all_ids, INACTIVE_AFTER) == {idle.id, archived.id}
    assert await SessionRegistry(cell.database).expired(all_ids, timedelta(days=3)) == set()
    await SessionExpiry(cell.database, None).run()
    assert [row async for row in SessionExpiry(cell.database, None).list_expired()] == []
    expiry = SessionExpiry(cell.database, INACTIVE_AFTER)
    assert {idle.id, archived.id} <= {row["session_id"] async for row in expiry.list_expired()}
    for _ in range(3):  # a run looks at 2,000 sessions, and other tests have created more
        await expiry.run()
    remaining = await SessionRegistry(cell.database).existing(all_ids)
    assert remaining == {*all_ids} - {idle.id, archived.id}
    assert await cell.rows("snapshots", idle.id) == []
    assert {each for _, each in await SessionRegistry(cell.database).deleted()} >= {idle.id, archived.id}


async def test_no_turn_starts_while_a_sessions_directories_are_released(cell: Cell, principal: Principal) -> None:
    session = await _old_session(cell, principal)
    log = SessionRegistry(cell.database)
    async with log.resting(session.id, INACTIVE_AFTER) as files:
        assert files is not None
        assert files.snapshots == {SCRATCH_TREE: StoredSnapshot(0, Snapshot("a" * 40))}
        sending = asyncio.create_task(cell.send(principal, session.id, "hello again"))
        await asyncio.sleep(0.3)
        assert not sending.done()
    await sending
    async with log.resting(session.id, INACTIVE_AFTER) as files:
        assert files is None
    claim = await cell.claim(session.id, principal)
    await cell.turns.append(claim, [events.message("still here")])
