"""Write leases: one writer at a time, in the order of the queue, and a dead holder only until its lease expires."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain.projects.write_leases import LeaseHeld, LeaseLost
from footplate.store.leases.branch_and_directory_leases import WriteLeases

from .cell import Cell, new_principal

pytestmark = pytest.mark.timing

TARGET = "proj_1 refs/heads/main"


@pytest.mark.requirement("C2")
async def test_writers_hold_the_lease_one_at_a_time_in_queue_order(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    order: list[int] = []
    inside = 0

    async def write(number: int) -> int:
        nonlocal inside
        async with leases.hold(organisation, TARGET, owner=f"writer {number}") as lease:
            inside += 1
            assert inside == 1
            order.append(number)
            await asyncio.sleep(0.05)
            await lease.check()
            inside -= 1
            return lease.token

    waiting = []
    async with leases.hold(organisation, TARGET, owner="the first"):
        for number in range(6):
            waiting.append(asyncio.create_task(write(number)))
            async with asyncio.timeout(30):
                while await _queued(cell, organisation) <= number:  # noqa: ASYNC110 - it is in the database
                    await asyncio.sleep(0.02)
    tokens = await asyncio.gather(*waiting)
    assert order == sorted(order)
    assert [*tokens] == [2, 3, 4, 5, 6, 7]


async def _queued(cell: Cell, organisation: str) -> int:
    async with cell.database.connection() as connection:
        found = await connection.fetchval("select count(*) from write_queue where organisation = $1", organisation)
    return int(found)


async def test_other_targets_and_organisations_do_not_wait(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    async with (
        leases.hold(organisation, TARGET, owner="a"),
        leases.hold(organisation, "proj_1 refs/heads/next", owner="b", wait=0),
        leases.hold(new_principal().organisation, TARGET, owner="c", wait=0),
    ):
        pass


@pytest.mark.requirement("C2")
async def test_a_waiter_that_times_out_learns_the_holder_and_since_when(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    async with leases.hold(organisation, TARGET, owner="the merge of session sesn_1"):
        waiting = asyncio.create_task(_hold(leases, organisation, "in between", 0.2))
        await asyncio.sleep(0.1)
        with pytest.raises(LeaseHeld) as caught:
            async with leases.hold(organisation, TARGET, owner="late", wait=0.3, display_name="the branch main"):
                raise AssertionError
    await waiting
    error = caught.value
    assert error.status == 409
    assert "the branch main: the merge of session sesn_1, since 20" in error.message
    assert "The request waited 0 s" in error.message
    assert "waiting ahead of this request: 1." in error.message
    assert abs((datetime.now(UTC) - error.since).total_seconds()) < 30
    async with leases.hold(organisation, TARGET, owner="late", wait=5):  # no queue entry of theirs remains
        pass


async def _hold(leases: WriteLeases, organisation: str, owner: str, seconds: float) -> None:
    async with leases.hold(organisation, TARGET, owner=owner, wait=30):
        await asyncio.sleep(seconds)


async def test_the_lease_of_a_dead_holder_expires_and_its_token_is_fenced(cell: Cell) -> None:
    organisation = new_principal().organisation
    leases = WriteLeases(cell.database, hold=1.0)
    dead = leases.hold(organisation, TARGET, owner="dead")
    lease = await dead.__aenter__()
    for task in asyncio.all_tasks():  # like a stopped process, it renews nothing
        if getattr(task.get_coro(), "__name__", "") == "renew_until_cancelled":
            task.cancel()
    began = time.monotonic()
    async with leases.hold(organisation, TARGET, owner="next", wait=30) as following:
        assert 0.5 < time.monotonic() - began < 10
        assert following.token == lease.token + 1
        with pytest.raises(LeaseLost, match="lost its lease"):
            await lease.check()
        await following.check()
        await dead.__aexit__(None, None, None)  # a late release does not release the lease of the next holder
        with pytest.raises(LeaseHeld, match="next"):
            async with leases.hold(organisation, TARGET, owner="third", wait=0):
                raise AssertionError


async def test_a_successor_does_not_wait_for_its_dead_predecessor(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    dead = leases.hold(organisation, TARGET, owner="a turn of session 1")
    lease = await dead.__aenter__()
    waiting = asyncio.create_task(_hold(leases, organisation, "another", 0))
    await asyncio.sleep(0.2)
    async with leases.hold(organisation, TARGET, owner="a turn of session 1", wait=0, successor=True) as following:
        assert following.token == lease.token + 1
        with pytest.raises(LeaseLost):
            await lease.check()
        with pytest.raises(LeaseHeld):
            async with leases.hold(organisation, TARGET, owner="a turn of session 2", wait=0, successor=True):
                raise AssertionError
        assert not waiting.done()
    await waiting
    await dead.__aexit__(None, None, None)


async def test_a_living_holder_renews_its_lease(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database, hold=0.6), new_principal().organisation
    async with leases.hold(organisation, TARGET, owner="long") as lease:
        with pytest.raises(LeaseHeld):
            async with leases.hold(organisation, TARGET, owner="short", wait=2):
                raise AssertionError
        await lease.check()


async def test_a_dead_waiter_is_skipped(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    async with cell.database.connection() as connection:
        await connection.execute(
            "insert into write_queue (organisation, place, asker, asked_at) values ($1, $2, $1, now() - $3::interval)",
            organisation,
            TARGET,
            timedelta(seconds=60),
        )
    async with leases.hold(organisation, TARGET, owner="alive", wait=0):
        pass


async def test_a_lost_acknowledgement_acquires_one_lease(cell: Cell) -> None:
    leases, organisation = WriteLeases(cell.database), new_principal().organisation
    cell.database.acknowledgements_to_lose = 3
    async with leases.hold(organisation, TARGET, owner="once") as lease:
        assert lease.token == 1
    async with leases.hold(organisation, TARGET, owner="again", wait=0) as lease:
        assert lease.token == 2
