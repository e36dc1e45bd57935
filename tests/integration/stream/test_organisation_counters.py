"""Requests and open streams of organisations are counted in a real Redis, by several processes together."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from footplate.domain import ids
from footplate.domain.organisations.limits import (
    RATE_WINDOW_SECONDS,
    AppliedLimit,
    LimitName,
    OrganisationLimitExceeded,
    StreamLease,
)
from footplate.domain.organisations.principals import Principal
from footplate.stack.orphan_processes import wait_until
from footplate.stream import organisation_counters, redis_connections
from footplate.stream.organisation_counters import RequestRates, StreamCounts

from .redis_server import RedisServer

pytestmark = pytest.mark.timing

RATE, STREAMS = LimitName.REQUESTS_PER_SECOND, LimitName.STREAMS


@pytest.fixture
def member() -> Principal:
    return Principal(ids.new_id(ids.ORGANISATION), ids.new_id(ids.MEMBER), "ann", frozenset())


def limit(name: LimitName, value: int, principal: Principal, *, of_member: bool = False) -> AppliedLimit:
    return AppliedLimit(name, value, principal.organisation, principal if of_member else None)


async def is_counted(rates: RequestRates, *applied: AppliedLimit) -> bool:
    try:
        await rates.count_request(applied)
    except OrganisationLimitExceeded as error:
        return not 0 < error.retry_after <= RATE_WINDOW_SECONDS
    return True


async def open_streams(
    counts: StreamCounts, count: int, principal: Principal, *applied: AppliedLimit
) -> list[StreamLease]:
    """Opens as many streams as possible at the same time, at most `count`."""
    found = await asyncio.gather(
        *(counts.open_stream(principal, applied) for _ in range(count)), return_exceptions=True
    )
    refused = [each for each in found if isinstance(each, BaseException)]
    assert all(isinstance(each, OrganisationLimitExceeded) for each in refused), refused
    return [each for each in found if not isinstance(each, BaseException)]


@pytest_asyncio.fixture(loop_scope="session")
async def replicas(shared_redis: RedisServer) -> AsyncIterator[list[tuple[RequestRates, StreamCounts]]]:
    clients = [redis_connections.create_command_client(shared_redis.url) for _ in range(2)]
    yield [(RequestRates(client), StreamCounts(client)) for client in clients]
    for client in clients:
        await client.aclose()


async def test_replicas_share_one_rate(replicas: list[tuple[RequestRates, StreamCounts]], member: Principal) -> None:
    rates = [rate for rate, _ in replicas]
    applied = limit(RATE, 2, member)
    counted = [await is_counted(rates[number % 2], applied) for number in range(60)]
    assert counted == [True] * 20 + [False] * 40
    assert await rates[0].read_rate(applied) == 2
    assert await is_counted(rates[0], limit(RATE, 2, Principal("other", "memb_1", "bob", frozenset())))


async def test_a_rate_has_room_again(
    replicas: list[tuple[RequestRates, StreamCounts]], member: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(organisation_counters, "RATE_WINDOW_SECONDS", 1)
    (rates, _), applied = replicas[0], limit(RATE, 1, member)
    assert [await is_counted(rates, applied) for _ in range(3)] == [True, False, False]
    assert await wait_until(partial(is_counted, rates, applied), 30)


async def test_a_member_beyond_its_rate_does_not_use_up_that_of_the_organisation(
    replicas: list[tuple[RequestRates, StreamCounts]], member: Principal
) -> None:
    (rates, _), whole = replicas[0], limit(RATE, 3, member)
    applied = (limit(RATE, 1, member, of_member=True), whole)
    assert sum([await is_counted(rates, *applied) for _ in range(50)]) == 10
    assert await rates.read_rate(whole) == 1


async def test_requests_are_served_while_redis_is_down(own_redis: RedisServer, member: Principal) -> None:
    client = redis_connections.create_command_client(own_redis.url)
    rates, counts = RequestRates(client), StreamCounts(client)
    await own_redis.stop()
    assert all([await is_counted(rates, limit(RATE, 1, member)) for _ in range(50)])
    # Streams are then limited in each process alone.
    assert len(await open_streams(counts, 5, member, limit(STREAMS, 3, member))) == 3
    assert (await rates.read_rate(limit(RATE, 1, member)), await counts.count_open(limit(STREAMS, 3, member))) == (
        None,
    ) * 2
    await client.aclose()


async def test_replicas_share_the_limit_of_streams(
    replicas: list[tuple[RequestRates, StreamCounts]], member: Principal
) -> None:
    counts = [each for _, each in replicas]
    applied = limit(STREAMS, 3, member)
    opened = [*await open_streams(counts[0], 2, member, applied), *await open_streams(counts[1], 5, member, applied)]
    assert len(opened) == 3
    assert await counts[0].count_open(applied) == 3
    assert await open_streams(counts[0], 1, member, applied) == []
    opened[0].release()
    opened[0].release()

    async def has_room() -> bool:
        return bool(await open_streams(counts[1], 1, member, applied))

    assert await wait_until(has_room, 30)
    other = Principal(member.organisation, "memb_other", "bob", frozenset())
    own = limit(STREAMS, 1, other, of_member=True)
    assert await open_streams(counts[1], 1, other, own)
    assert await open_streams(counts[0], 1, other, own) == []


async def test_the_streams_of_a_killed_process_stop_counting(
    replicas: list[tuple[RequestRates, StreamCounts]], member: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(organisation_counters, "_LEASE_SECONDS", 1.0)
    monkeypatch.setattr(organisation_counters, "_RENEWAL_SECONDS", 0.2)
    (_, killed), (_, alive) = replicas
    applied = limit(STREAMS, 3, member)

    async def is_limited(organisation: str) -> bool:
        return organisation == member.organisation

    await open_streams(alive, 1, member)  # before there is a limit
    await open_streams(killed, 2, member, applied)

    async def only_own_counts() -> bool:
        return await alive.count_open(applied) == 1

    async with alive.renewing(is_limited):
        assert await wait_until(only_own_counts, 30)
        assert len(await open_streams(alive, 5, member, applied)) == 2
        await asyncio.sleep(1.5)
        assert await alive.count_open(applied) == 3
