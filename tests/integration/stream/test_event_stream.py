"""The event stream without failures: from now or from a cursor, each position once, in order, until the end."""

import asyncio
from datetime import UTC, datetime

import pytest

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher

from .memory_log import MemoryLog
from .redis_server import RedisServer
from .stream_client import ORGANISATION, Client

pytestmark = pytest.mark.timing


async def test_without_a_cursor_the_stream_starts_now(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    log.append(session_id, events.status_running(), events.message("old"))
    client = await Client(hub, session_id).open()
    assert client.began_at == 2
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("new")))
    received = await client.next()
    assert (received.event, received.id) == ("agent.message", "3")
    assert received.data["content"] == [{"type": "text", "text": "new"}]
    await client.close()


async def test_an_event_committed_right_after_opening_the_stream_is_delivered(
    live_hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """The reader has not started when the first event is published. This is the race of the quickstart."""
    client = await Client(live_hub, session_id).open()
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("at once")))
    await live.wait_until_sent()
    assert (await client.next()).id == "1"
    await client.close()


async def test_a_cursor_reads_the_log_and_then_continues_live(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    log.append(session_id, *(events.message(str(number)) for number in range(1000)))
    client = await Client(hub, session_id, cursor=Cursor(10)).open()
    assert client.began_at is None
    await client.until_seq(1000)
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("live")))
    await client.until_seq(1001)
    assert client.seqs == list(range(11, 1002))
    await client.close()


async def test_the_second_position_of_an_input_is_delivered_too(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    event = events.Event(events.USER_MESSAGE, {"content": []})
    now = datetime.now(UTC)
    client = await Client(hub, session_id).open()
    accepted, taken = Position(1, event, now, None), Position(2, event, now, now)
    log.sessions[session_id] += [accepted, taken]
    await live.publish(ORGANISATION, session_id, [accepted])
    await live.publish(ORGANISATION, session_id, [taken])
    first, second = await client.next(), await client.next()
    assert first.data["id"] == second.data["id"] == event.id
    assert first.data["processed_at"] is None
    assert second.data["processed_at"] is not None
    await client.close()


async def test_lost_repeated_and_reordered_publishes_are_corrected(
    live_hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(live_hub, session_id).open()
    batches = [log.append(session_id, events.message(str(number)), events.status_running()) for number in range(6)]
    for batch in (batches[0], batches[0], batches[3], batches[1], batches[5]):
        await live.publish(ORGANISATION, session_id, batch)
    await client.until_seq(12)
    assert client.seqs == list(range(1, 13))
    await client.close()


async def test_the_stream_ends_after_the_session_was_deleted(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    deleted = log.append(session_id, events.message("bye"), events.Event(events.SESSION_DELETED))
    await live.publish(ORGANISATION, session_id, deleted)
    assert [received.event for received in await client.until("session.deleted")] == [
        "agent.message",
        "session.deleted",
    ]
    with pytest.raises(StopAsyncIteration):
        await client.next()


async def test_the_stream_ends_when_the_session_is_missing_from_the_log(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    del log.sessions[session_id]
    with pytest.raises(StopAsyncIteration):
        await client.next()


async def test_an_unknown_session_is_refused_before_anything_is_sent(hub: StreamHub) -> None:
    with pytest.raises(NotFound):
        await Client(hub, ids.new_id(ids.SESSION)).open()


async def test_live_events_of_another_organisation_are_ignored(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    await live.publish("org_2", session_id, [Position(1, events.message("foreign"), datetime.now(UTC), None)])
    await live.wait_until_sent()
    await live.publish(ORGANISATION, session_id, log.append(session_id, events.message("own")))
    assert (await client.next()).data["content"][0]["text"] == "own"
    await client.close()


async def test_an_idle_stream_sends_keepalives(shared_redis: RedisServer, log: MemoryLog, session_id: str) -> None:
    async with StreamHub(shared_redis.url, log, keepalive=0.1) as hub:
        client = await Client(hub, session_id).open()
        async with asyncio.timeout(20):
            assert [await client.chunk() for _ in range(3)] == [b"", b"", b""]
        await client.close()


async def test_a_server_that_stops_ends_its_streams(shared_redis: RedisServer, log: MemoryLog, session_id: str) -> None:
    async with StreamHub(shared_redis.url, log) as hub:
        client = await Client(hub, session_id).open()
        hub.end_streams()
        with pytest.raises(StopAsyncIteration):
            await client.next()


async def test_a_session_without_clients_uses_no_memory(hub: StreamHub, log: MemoryLog, session_id: str) -> None:
    clients = [await Client(hub, session_id).open() for _ in range(3)]
    for client in clients:
        await client.close()
    assert not hub._channels
    assert not hub._reader._watched


@pytest.mark.requirement("S2")
async def test_events_of_a_turn_come_in_the_order_they_were_written(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    turn = TurnPublisher(live, ORGANISATION, session_id)
    await turn.publish(log.append(session_id, events.status_running(), events.model_request_start()))
    preview = turn.preview("agent.message")
    for chunk in ("one ", "two ", "three"):
        preview.write(chunk)
        await client.until("event_delta")
    await turn.publish(log.append(session_id, events.message("one two three", event_id=preview.event_id)))
    await turn.publish(log.append(session_id, events.status_idle({"type": "end_turn"})))
    await client.until("session.status_idle")
    received = client.seen
    assert [item.event for item in received] == [
        "session.status_running",
        "span.model_request_start",
        "event_start",
        "event_delta",
        "event_delta",
        "event_delta",
        "agent.message",
        "session.status_idle",
    ]
    assert [item.id for item in received[2:6]] == [f"2.{preview.event_id}.{offset}" for offset in (0, 4, 8, 13)]
    await client.close()
