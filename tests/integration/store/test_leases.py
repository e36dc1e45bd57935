"""A worker's lease counts as lapsed only if it is known to have lapsed."""

import secrets

import pytest

from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions.turns import SessionToWake
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


async def test_a_lost_turn_of_a_living_worker_is_released_for_the_sweep(cell: Cell, principal: Principal) -> None:
    """The worker lost its lease for a moment, and Temporal, which would repeat the turn, has lost its state."""
    leases, worker = WorkerLeases(cell.database), f"worker_{secrets.token_hex(8)}"
    await leases.renew_lease(worker, "host", 60, [])
    lost, held = await cell.session(principal, "one"), await cell.session(principal, "two")
    for session_id in (lost, held):
        await cell.claim(session_id, principal, worker)
    assert await leases.release_forgotten(worker, [held], older_than=30) == []
    async with cell.database.connection() as connection:
        claimed = "update session_heads set claimed_at = now() - interval '2 minutes' where session_id = any($1)"
        await connection.execute(claimed, [lost, held])
    assert SessionToWake(principal.organisation, lost) not in await leases.find_sessions_to_wake(
        older_than=5, lost_for=60, limit=1000
    )
    assert await leases.release_forgotten(worker, [held], older_than=30) == [lost]
    found = await leases.find_sessions_to_wake(older_than=5, lost_for=60, limit=1000)
    assert SessionToWake(principal.organisation, lost) in found
    assert SessionToWake(principal.organisation, held) not in found
    resumed = await cell.claim(lost, principal, worker)
    assert resumed.attempt == 2
