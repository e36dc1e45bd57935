"""A client that does not read uses bounded memory, delays no other client, and loses nothing when it reads again."""

import asyncio
import statistics
import time

import pytest

from footplate.domain.sessions import events
from footplate.stream.client_queue import QUEUE_BYTES
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher

from .memory_log import MemoryLog
from .stream_client import ORGANISATION, Client

pytestmark = pytest.mark.timing


async def test_a_client_that_does_not_read_uses_bounded_memory_and_catches_up(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    stuck = await Client(hub, session_id).open()
    reader = await Client(hub, session_id).open()
    subscribers = next(iter(hub._channels.values())).subscribers
    largest = 0
    for _ in range(60):
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("x" * 30_000)))
        await reader.until_seq(len(log.sessions[session_id]))
        largest = max(largest, *(subscriber._size for subscriber in subscribers))
    assert QUEUE_BYTES // 2 < largest <= QUEUE_BYTES
    await stuck.until_seq(60)
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("small")))
    await stuck.until_seq(61)
    await reader.until_seq(61)
    assert stuck.seqs == reader.seqs == list(range(1, 62))
    await stuck.close()
    await reader.close()


async def test_chunks_are_bounded_when_a_client_catches_up(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    stuck = await Client(hub, session_id).open()
    log.append(session_id, *(events.message("x" * 60_000) for _ in range(60)))
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("gap")))
    await asyncio.sleep(0.2)
    received = 0
    while received < 60 * 60_000:
        chunk = await stuck.chunk()
        assert len(chunk) <= QUEUE_BYTES
        received += len(chunk)
    await stuck.close()


async def test_an_interrupted_preview_is_not_started_again(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    stuck = await Client(hub, session_id).open()
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("seen ")
    await stuck.until("event_delta")
    for _ in range(30):
        preview.write("x" * 30_000)
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.1)
    preview.write("more")
    await turn.publish(log.append(session_id, events.message("all", event_id=preview.event_id)))
    assert [item.event for item in await stuck.until("agent.message")] == ["agent.message"]
    await stuck.close()


async def test_a_hundred_stuck_clients_do_not_delay_a_reader(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    stuck = [await Client(hub, session_id).open() for _ in range(100)]
    reader = await Client(hub, session_id).open()
    took = []
    for _ in range(100):
        began = time.monotonic()
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("x" * 10_000)))
        await reader.until_seq(len(log.sessions[session_id]))
        took.append(time.monotonic() - began)
    assert statistics.median(took) < 0.25
    for client in [*stuck, reader]:
        await client.close()
