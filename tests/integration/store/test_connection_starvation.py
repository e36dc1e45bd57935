"""Slow changes of one organisation do not exhaust the database connections of others."""

import asyncio

import pytest

from footplate.domain.ports.api import RequestAttempt
from footplate.store.database import Database
from footplate.store.unit_of_work import UnitOfWorkFactory

from .cell import Cell, new_principal

pytestmark = pytest.mark.timing


async def test_retries_that_wait_for_a_slow_change_do_not_use_up_the_connections(cell: Cell) -> None:
    database = await Database.open(cell.dsn, size=4, retry_seconds=2.0)
    units, slow, other = UnitOfWorkFactory(database, cell.objects), new_principal(), new_principal()
    attempt = RequestAttempt(method="POST", path="/v1/sessions/import", body_hash=b"body", idempotency_key="same")
    started, release = asyncio.Event(), asyncio.Event()

    async def change() -> None:
        async with units.unit(slow, attempt):
            started.set()
            await release.wait()

    try:
        first = asyncio.create_task(change())
        await started.wait()
        waiting = [asyncio.create_task(change()) for _ in range(10)]
        await asyncio.sleep(0.2)
        async with asyncio.timeout(5), units.unit(other, None) as unit:
            assert unit.stored_response is None
    finally:
        release.set()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        await database.close()
