"""Unused sessions expire. A session that waits for anything does not, however long it waits."""

import asyncio
from datetime import timedelta

import pytest

from footplate.domain import events
from footplate.domain.principals import Principal
from footplate.domain.snapshots import SCRATCH, KeptSnapshot, Snapshot, TreeSnapshot
from footplate.store.expiry import Expiry
from footplate.store.session_log import SessionLog

from .archiving import REST, Rester, rester
from .cell import ANSWERED, Cell, ask, waits_for

pytestmark = pytest.mark.timing


async def _old(cell: Cell, principal: Principal, *, waits: bool = False) -> Rester:
    session = Rester(cell, principal, await cell.session(principal, "hello"))
    claim = await cell.claim(session.id, principal)
    question = ask()
    await cell.turns.append(claim, [question], files=[TreeSnapshot(SCRATCH, KeptSnapshot(0, Snapshot("a" * 40)))])
    await cell.turns.finish(claim, waits_for(question) if waits else ANSWERED)
    await session.grow_old()
    return session


async def test_only_who_waits_for_nothing_expires(cell: Cell, principal: Principal) -> None:
    idle, waits, forked, queued, young = [await _old(cell, principal, waits=n == 1) for n in range(5)]
    fork = await cell.fork(principal, forked.id)
    await cell.send(principal, queued.id, "one more")
    await queued.grow_old()
    async with cell.database.connection() as connection:
        await connection.execute("update session_heads set wake = false where session_id = $1", queued.id)
    await young.turn("now")
    archived = await rester(cell, principal, 1)
    await archived.archive()
    everybody = [each.id for each in (idle, waits, forked, queued, young, archived)] + [fork.id]
    assert await SessionLog(cell.database).expired(everybody, REST) == {idle.id, archived.id}
    assert await SessionLog(cell.database).expired(everybody, timedelta(days=3)) == set()
    await Expiry(cell.database, None).run()
    assert [row async for row in Expiry(cell.database, None).due()] == []
    expiry = Expiry(cell.database, REST)
    assert {idle.id, archived.id} <= {row["session_id"] async for row in expiry.due()}
    await expiry.run()
    left = await SessionLog(cell.database).existing(everybody)
    assert left == {*everybody} - {idle.id, archived.id}
    assert await cell.rows("snapshots", idle.id) == []
    assert {each for _, each in await SessionLog(cell.database).deleted()} >= {idle.id, archived.id}


async def test_while_its_directories_are_released_no_turn_begins(cell: Cell, principal: Principal) -> None:
    session = await _old(cell, principal)
    log = SessionLog(cell.database)
    async with log.resting(session.id, REST) as files:
        assert files is not None
        assert files.kept == {SCRATCH: KeptSnapshot(0, Snapshot("a" * 40))}
        sending = asyncio.create_task(cell.send(principal, session.id, "hello again"))
        await asyncio.sleep(0.3)
        assert not sending.done()
    await sending
    async with log.resting(session.id, REST) as files:
        assert files is None
    claim = await cell.claim(session.id, principal)
    await cell.turns.append(claim, [events.message("still here")])
