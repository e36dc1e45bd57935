"""Previews: clients join midway, resume after a disconnect, and see no preview after the event that completes it."""

import asyncio
from collections.abc import Sequence

import pytest
from anthropic.lib.sessions import AccumulatedEvent, accumulate_managed_agents_event
from anthropic.types.beta.sessions import BetaManagedAgentsStreamSessionEvents
from pydantic import TypeAdapter

from footplate.domain.ports.api import Cursor
from footplate.domain.ports.harness import Preview
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.stream import redis_keys
from footplate.stream.live_entry_codec import PreviewDelta, PreviewStart
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher

from .memory_log import MemoryLog
from .stream_client import ALL, ORGANISATION, Client, Received

pytestmark = pytest.mark.timing

STREAM_EVENT: TypeAdapter[BetaManagedAgentsStreamSessionEvents] = TypeAdapter(BetaManagedAgentsStreamSessionEvents)


def accumulate(received: Sequence[Received]) -> AccumulatedEvent | None:
    """Returns what the official SDK accumulates from the frames, and raises where the SDK does."""
    accumulated = None
    for item in received:
        accumulated = accumulate_managed_agents_event(accumulated, STREAM_EVENT.validate_python(item.data))
    return accumulated


def text_of(received: Sequence[Received]) -> str:
    accumulated = accumulate(received)
    assert accumulated is not None
    return "".join(block.text for block in accumulated.content if block.type == "text")


@pytest.mark.requirement("S2")
async def test_a_client_that_joins_midway_receives_the_whole_message(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """Twenty clients join at different positions of the message and use the SDK's own accumulator."""
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running(), events.model_request_start()))
    preview = turn.preview("agent.message")
    clients: list[Client] = []
    chunks = [f"word{number} é\u2028" for number in range(100)]
    for number, chunk in enumerate(chunks):
        preview.write(chunk)
        await asyncio.sleep(0.002)
        if number % 5 == 2:
            clients.append(await Client(hub, session_id).open())
    await turn.publish(log.append(session_id, events.message("".join(chunks), event_id=preview.event_id)))
    for client in clients:
        received = await client.until("agent.message")
        assert [item.event for item in received].count("event_start") == 1
        assert received[0].event == "event_start"
        assert text_of(received[:-1]) == text_of(received) == "".join(chunks)
        await client.close()


async def test_a_client_that_joins_a_very_long_message_receives_its_event_only(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    preview: Preview = turn.preview("agent.message")
    preview.write("x" * 600_000)
    await asyncio.sleep(0.05)
    client = await Client(hub, session_id).open()
    preview.write("more")
    await asyncio.sleep(0.1)
    await turn.publish(log.append(session_id, events.message("all", event_id=preview.event_id)))
    assert [item.event for item in await client.until("agent.message")] == ["agent.message"]
    await client.close()


async def test_a_stream_resumes_a_message_at_the_offset(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    first = await Client(hub, session_id).open()
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("Hello ")
    cut = (await first.until("event_delta"))[-1]
    await first.close()
    preview.write("wor")
    await asyncio.sleep(0.05)
    second = await Client(hub, session_id, cursor=cut.cursor).open()
    rest = await second.until("event_delta")
    preview.write("ld")
    rest += await second.until("event_delta")
    assert [item.event for item in rest] == ["event_start", "event_delta", "event_delta"]
    assert text_of(rest) == "world"
    assert rest[0].cursor == cut.cursor
    await turn.publish(log.append(session_id, events.message("Hello world", event_id=preview.event_id)))
    assert (await second.next()).event == "agent.message"
    await second.close()


async def test_only_selected_types_are_previewed(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    selections = [frozenset[str](), frozenset({"agent.message"}), frozenset({"agent.thinking"}), ALL]
    clients = [await Client(hub, session_id, deltas=selection).open() for selection in selections]
    turn = TurnPublisher(live, ORGANISATION, session_id)
    await turn.publish(log.append(session_id, events.status_running()))
    for client in clients:
        await client.next()
    thought = turn.preview("agent.thinking")
    thought.write("never shown: the reference's thinking is a start and nothing more")
    await turn.publish(log.append(session_id, events.thinking("hm", event_id=thought.event_id)))
    preview = turn.preview("agent.message")
    preview.write("hi")
    await turn.publish(log.append(session_id, events.message("hi", event_id=preview.event_id)))
    kinds = [[item.event for item in await client.until("agent.message")] for client in clients]
    assert kinds == [
        ["agent.thinking", "agent.message"],
        ["agent.thinking", "event_start", "event_delta", "agent.message"],
        ["event_start", "agent.thinking", "agent.message"],
        ["event_start", "agent.thinking", "event_start", "event_delta", "agent.message"],
    ]
    for client in clients:
        accumulate(client.seen)
        await client.close()


async def test_inputs_during_a_message_do_not_disturb_its_preview(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """The turn does not know of the inputs, so a client that joins later has to read the log to trust the preview."""
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    early = await Client(hub, session_id).open()
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("one ")
    await early.until("event_delta")
    await live.publish(ORGANISATION, session_id, log.append(session_id, Event(events.USER_MESSAGE, {"content": []})))
    await early.until(events.USER_MESSAGE)
    late = await Client(hub, session_id).open()
    preview.write("two")
    await early.until("event_delta")
    await turn.publish(log.append(session_id, events.message("one two", event_id=preview.event_id)))
    for client in (early, late):
        await client.until("agent.message")
        assert text_of(client.seen[:-1]) == "one two"
        await client.close()


async def test_the_preview_of_a_dead_worker_is_not_shown_again(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """The event was committed, its publish was lost, and the saved preview still exists."""
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("half")
    await live.wait_until_sent()
    log.append(session_id, events.message("half and half", event_id=preview.event_id))
    client = await Client(hub, session_id).open()
    preview.write(" and half")
    await asyncio.sleep(0.1)
    idle = log.append(session_id, events.status_idle({"type": "end_turn"}))
    await live.publish(ORGANISATION, session_id, idle)
    assert [item.event for item in await client.until("session.status_idle")] == ["session.status_idle"]
    await client.close()


async def test_an_orphaned_preview_is_closed_by_the_end_of_its_request(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    dead = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    early = await Client(hub, session_id).open()
    await dead.publish(log.append(session_id, events.model_request_start()))
    orphan = dead.preview("agent.message")
    orphan.write("half")
    await early.until("event_delta")
    recovery = TurnPublisher(live, ORGANISATION, session_id, after_seq=1)
    end = events.model_request_end("sevt_start", events.Usage(), is_error=True)
    await recovery.publish(log.append(session_id, end))
    orphan.write(" a zombie's text")
    await early.until("span.model_request_end")
    late = await Client(hub, session_id).open()
    again = recovery.preview("agent.message")
    again.write("whole")
    await recovery.publish(log.append(session_id, events.message("whole", event_id=again.event_id)))
    for client in (early, late):
        received = await client.until("agent.message")
        assert [item.event for item in received] == ["event_start", "event_delta", "agent.message"]
        assert text_of(received[:-1]) == "whole"
        await client.close()


async def test_a_lost_chunk_is_restored_from_the_saved_preview(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("one ")
    await client.until("event_delta")
    hub._reader._on_entry = lambda _: None  # the reader loses entries
    preview.write("two ")
    await asyncio.sleep(0.05)
    hub._reader._on_entry = hub._on_entry
    preview.write("three")
    await client.until("event_delta")
    assert text_of(client.seen) == "one two three"
    await client.close()


async def test_a_chunk_that_cannot_be_restored_ends_the_preview_but_not_the_stream(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id).open()
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    preview = turn.preview("agent.message")
    preview.write("one ")
    await client.until("event_delta")
    await hub._command_client.delete(redis_keys.open_preview_key(ORGANISATION, session_id))
    turn._sent_chars += 4  # as if a chunk had been dropped
    preview.write("three")
    await asyncio.sleep(0.05)
    preview.write(" four")
    await turn.publish(log.append(session_id, events.message("one two three four", event_id=preview.event_id)))
    assert (await client.next()).event == "agent.message"
    await client.close()


async def test_the_start_of_an_older_preview_does_not_replace_the_open_one(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """The saved preview is ahead of a late reader, which then receives the start of the older preview and its own."""
    turn = TurnPublisher(live, ORGANISATION, session_id, flush_seconds=0.001)
    await turn.publish(log.append(session_id, events.status_running()))
    old, new = turn.preview("agent.message"), turn.preview("agent.message")
    new.write("one ")
    await asyncio.sleep(0.05)
    client = await Client(hub, session_id).open()
    await client.until("event_delta")
    channel = next(iter(hub._channels.values()))
    for body in (
        PreviewStart(old.event_id, "agent.message", 1),
        PreviewDelta(old.event_id, 0, "old"),
        PreviewStart(new.event_id, "agent.message", 1),
    ):
        channel.receive(body)
    new.write("two")
    await turn.publish(log.append(session_id, events.message("one two", event_id=new.event_id)))
    await client.until("agent.message")
    assert [item.event for item in client.seen] == ["event_start", "event_delta", "event_delta", "agent.message"]
    assert text_of(client.seen[:-1]) == "one two"
    await client.close()


async def test_a_cursor_inside_a_completed_preview_receives_its_event(
    hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    log.append(session_id, events.status_running())
    finished = log.append(session_id, events.message("all of it"))[0]
    client = await Client(hub, session_id, cursor=Cursor(1, finished.event.id, 3)).open()
    received = await client.next()
    assert (received.event, received.id) == ("agent.message", "2")
    await client.close()
