"""Slow changes of one organisation do not exhaust the database connections of others."""

import asyncio

import pytest

from footplate.domain.services import Attempt
from footplate.store.database import Database
from footplate.store.units import Units

from .cell import Cell, somebody

pytestmark = pytest.mark.timing


async def test_retries_that_wait_for_a_long_change_leave_connections_to_others(cell: Cell) -> None:
    database = await Database.open(cell.dsn, size=4, retry_seconds=2.0)
    units, slow, other = Units(database, cell.objects), somebody(), somebody()
    attempt = Attempt(method="POST", path="/v1/sessions/import", body_hash=b"body", idempotency_key="same")
    begun, release = asyncio.Event(), asyncio.Event()

    async def change() -> None:
        async with units.unit(slow, attempt):
            begun.set()
            await release.wait()

    try:
        first = asyncio.create_task(change())
        await begun.wait()
        waiting = [asyncio.create_task(change()) for _ in range(10)]
        await asyncio.sleep(0.2)
        async with asyncio.timeout(5), units.unit(other, None) as unit:
            assert unit.replay is None
    finally:
        release.set()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        await database.close()
