"""A worker's lease counts as lapsed only if it is known to have lapsed."""

import secrets

import pytest

from footplate.store.leases.worker_lease_store import WorkerLeases

from .cell import Cell


@pytest.mark.parametrize(("seconds", "lapsed"), [(60, False), (-5, False), (-15, True)])
async def test_a_lease_is_lapsed_only_if_it_is_known_to_be(cell: Cell, seconds: int, *, lapsed: bool) -> None:
    """A margin protects the guardians. An unknown worker may be starting, or belong to another cell."""
    leases, worker = WorkerLeases(cell.database), f"worker_{secrets.token_hex(8)}"
    assert not await leases.has_expired(worker)
    await leases.renew_lease(worker, "host", 60, [])
    async with cell.database.connection() as connection:
        until = "update workers set lease_until = clock_timestamp() + $2 * interval '1 second' where id = $1"
        await connection.execute(until, worker, seconds)
    assert await leases.has_expired(worker) is lapsed
    await leases.end_lease(worker)
    assert not await leases.has_expired(worker)
