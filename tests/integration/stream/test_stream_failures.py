"""The event stream with failures: disconnects, a Redis that loses data or stops, lost publishes, a log that is down."""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher

from .memory_log import MemoryLog
from .redis_server import RedisServer
from .stream_client import ORGANISATION, Client

pytestmark = pytest.mark.timing


@pytest_asyncio.fixture(loop_scope="session")
async def replica(shared_redis: RedisServer, log: MemoryLog) -> AsyncIterator[StreamHub]:
    async with StreamHub(shared_redis.url, log) as running:
        yield running


async def write_messages(live: LivePublisher, log: MemoryLog, session_id: str, stop: asyncio.Event) -> None:
    """Writes one turn after the other, with some publishes lost, until `stop` is set."""
    rng = random.Random(1)
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001, after_seq=len(log.sessions[session_id]))
    while not stop.is_set():
        preview = turn.preview("agent.message")
        for _ in range(rng.randrange(8)):
            preview.write("word ")
            await asyncio.sleep(0.001)
        batch = log.append(session_id, events.message("word", event_id=preview.event_id), events.status_running())
        if rng.random() < 0.9:
            await turn.publish(batch)
    await turn.aclose()


async def test_after_300_disconnects_each_position_arrived_once_in_order(
    hub: StreamHub, replica: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    rng = random.Random(2)
    stop = asyncio.Event()
    writer = asyncio.create_task(write_messages(live, log, session_id, stop))
    cursor = Cursor(0)
    seqs: list[int] = []
    for _ in range(300):
        client = await Client(rng.choice([hub, replica]), session_id, cursor=cursor).open()
        started: set[str] = set()
        for _ in range(rng.randrange(1, 12)):
            received = await client.next()
            cursor = received.cursor
            if received.event == "event_start":
                assert received.data["event"]["id"] not in started
                started.add(received.data["event"]["id"])
            if received.event == "event_delta":
                assert received.data["event_id"] in started
            if received.durable:
                assert cursor.seq == (seqs[-1] if seqs else 0) + 1
                seqs.append(cursor.seq)
            else:
                assert cursor.seq == (seqs[-1] if seqs else 0)
        await client.close()
    stop.set()
    await writer
    client = await Client(hub, session_id, cursor=cursor).open()
    if cursor.seq < len(log.sessions[session_id]):
        await client.until_seq(len(log.sessions[session_id]))
    await client.close()
    assert seqs + client.seqs == list(range(1, len(log.sessions[session_id]) + 1))


async def test_a_lost_publish_is_read_from_the_log(hub: StreamHub, log: MemoryLog, session_id: str) -> None:
    client = await Client(hub, session_id).open()
    for _ in range(3):
        log.append(session_id, events.message("never published"))
        await client.next()
    await client.close()


async def test_a_flush_or_restart_of_redis_loses_nothing(
    own_redis: RedisServer, log: MemoryLog, session_id: str
) -> None:
    async with LivePublisher(own_redis.url) as live, StreamHub(own_redis.url, log) as hub:
        client = await Client(hub, session_id).open()

        async def publish_and_receive() -> None:
            await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("x")))
            await client.until_seq(len(log.sessions[session_id]))

        await publish_and_receive()
        async with Redis.from_url(own_redis.url) as redis:
            for _ in range(3):
                await redis.flushall()
                await asyncio.sleep(0.005)
                # At least a millisecond later the ids continue with the clock, so nothing has to be repaired.
                await publish_and_receive()
                await redis.flushall()
                await (
                    publish_and_receive()
                )  # within the same millisecond the id may repeat, and the log repairs the stream
        for _ in range(2):
            await own_redis.stop()
            await publish_and_receive()
            await own_redis.start()
            await publish_and_receive()
            await asyncio.sleep(1.5)  # the reader's longest wait between two attempts
            await publish_and_receive()
        assert client.seqs == list(range(1, len(log.sessions[session_id]) + 1))
        await client.close()


async def test_a_redis_whose_clock_went_backwards_is_read_again(
    own_redis: RedisServer, log: MemoryLog, session_id: str
) -> None:
    async with LivePublisher(own_redis.url) as live, StreamHub(own_redis.url, log) as hub:
        client = await Client(hub, session_id).open()
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("x")))
        await client.until_seq(1)
        shard = next(iter(hub._reader._ids))
        hub._reader._ids[shard] = b"99999999999999-0"
        await asyncio.sleep(1.1)  # until the read with the old position has ended
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("lost")))
        await client.until_seq(2)
        await asyncio.sleep(1.1)
        assert hub._reader._ids[shard] < b"99999999999999-0"
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("found")))
        await client.until_seq(3)
        await client.close()


async def test_streams_work_without_redis(own_redis: RedisServer, log: MemoryLog, session_id: str) -> None:
    """Publishing does not delay a turn, and streams read the log."""
    await own_redis.stop()
    async with LivePublisher(own_redis.url) as live, StreamHub(own_redis.url, log) as hub:
        client = await Client(hub, session_id).open()
        turn = TurnPublisher(live, ORGANISATION, session_id)
        took = []
        for _ in range(200):
            began = time.monotonic()
            preview = turn.preview("agent.message")
            preview.write("text")
            await turn.publish(log.append(session_id, events.message("text", event_id=preview.event_id)))
            took.append(time.monotonic() - began)
            await asyncio.sleep(0)
        assert statistics.median(took) < 0.02
        await client.until_seq(200)
        assert client.seqs == list(range(1, 201))
        await client.close()


async def test_events_dropped_by_a_full_queue_are_read_from_the_log(
    shared_redis: RedisServer, log: MemoryLog, hub: StreamHub, session_id: str
) -> None:
    async with LivePublisher(shared_redis.url, max_bytes=2000) as live:
        client = await Client(hub, session_id).open()
        for _ in range(50):
            await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("x" * 100)))
        assert live._bytes <= 2000
        await client.until_seq(50)
        assert client.seqs == list(range(1, 51))
        await client.close()


async def test_a_log_that_is_down_for_a_while_loses_nothing(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    log.append(session_id, events.message("not published"))
    log.down = True
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("published: a gap")))
    await asyncio.sleep(1.2)
    log.down = False
    await client.until_seq(2)
    assert client.seqs == [1, 2]
    await client.close()
