"""Streams session events to all clients of one API process. Implements the `EventStreams` port.

One Redis reader serves all clients, and one query per second reads the last log position of each watched session. A
client receives events from the `SessionChannel` of its session, or directly from the log while it is behind.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Final, Self, cast

import structlog
from redis.exceptions import RedisError

from footplate.domain.errors import NotFound
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.stream import live_entry_codec, redis_connections, redis_keys, sse
from footplate.stream.client_queue import QUEUE_BYTES, Frame, Subscriber, read_with_retries
from footplate.stream.gapless_session_events import LogReader, SessionChannel, frame_from_log
from footplate.stream.live_entry_codec import PreviewStart
from footplate.stream.shard_reader import Entry, ShardReader

log = structlog.get_logger(__name__)

_REPLICA_SECONDS: Final = 0.05


class StreamHub:
    def __init__(
        self,
        url: str,
        log_reader: LogReader,
        *,
        keepalive: float = 15.0,
        heads_interval: float = 1.0,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._log = log_reader
        self._keepalive = keepalive
        self._heads_interval = heads_interval
        self._queue_bytes = queue_bytes
        self._command_client = redis_connections.create_command_client(url)
        self._reader_client = redis_connections.create_reader_client(url)
        self._reader = ShardReader(self._reader_client, on_entry=self._on_entry, on_started=self._on_shard_started)
        self._channels: dict[tuple[bytes, bytes], SessionChannel] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.open_streams = 0
        """Number of clients that currently follow a session."""

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._reader.run(), name="live reader"),
            asyncio.create_task(self._watch_heads(), name="live heads"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await redis_connections.cancel_tasks(*self._tasks)
        self.end_streams()
        for channel in self._channels.values():
            channel.close()
        await self._command_client.aclose()
        await self._reader_client.aclose()

    def end_streams(self) -> None:
        """Ends every stream after its queued data. Otherwise a stopping server would wait for the clients."""
        for channel in self._channels.values():
            channel.end_subscribers()

    async def frames(
        self,
        organisation: str,
        session_id: str,
        *,
        cursor: Cursor | None = None,
        deltas: frozenset[str] = frozenset(),
        thread_id: str | None = None,
        with_extensions: bool = False,
    ) -> AsyncIterator[bytes]:
        """Yields the first item as soon as the start position is fixed. Without a cursor, that item contains the
        position.

        Await it *before* sending the response headers: a client that has seen the headers may immediately send an
        event, which must then be in its stream.
        """
        with self._watch_session(organisation, session_id) as channel:
            start = await self._start_position(channel, cursor)
            subscriber = Subscriber[Frame](
                start,
                cursor=cursor,
                # The messages of a subagent's thread are sent when they are complete.
                deltas=deltas if thread_id is None else frozenset(),
                keepalive=self._keepalive,
                limit=self._queue_bytes,
                is_shown=lambda frame: frame.is_shown(thread_id, with_extensions=with_extensions),
                takes_default=thread_id is None and not with_extensions,
            )
            channel.subscribers.add(subscriber)
            self.open_streams += 1
            try:
                if channel.seq is not None and subscriber.seq >= channel.seq:
                    channel.attach(subscriber)
                yield sse.encode_start_position(start) if cursor is None else b""
                while (chunk := await subscriber.next_chunk(partial(self._catch_up, channel, subscriber))) is not None:
                    yield chunk
                    subscriber.mark_sent()
            finally:
                self.open_streams -= 1
                channel.subscribers.discard(subscriber)
                subscriber.close()

    @contextmanager
    def _watch_session(self, organisation: str, session_id: str) -> Iterator[SessionChannel]:
        key = organisation.encode(), session_id.encode()
        shard = redis_keys.shard_of(session_id)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = SessionChannel(organisation, session_id, self._log, self._load_open_preview)
            if self._reader.watch(shard):
                channel.request_preview()
        channel.user_count += 1
        try:
            yield channel
        finally:
            channel.user_count -= 1
            if channel.user_count == 0:
                del self._channels[key]
                channel.close()
                self._reader.unwatch(shard)

    async def _start_position(self, channel: SessionChannel, cursor: Cursor | None) -> int:
        if cursor is not None and channel.seq is not None:
            return cursor.seq
        head = (await self._log.heads([channel.session_id])).get(channel.session_id)
        if head is None:
            raise NotFound("session", channel.session_id)
        channel.anchor(head)
        return head if cursor is None else cursor.seq

    async def _catch_up(self, channel: SessionChannel, subscriber: Subscriber[Frame]) -> bytes:
        """Returns one chunk of the log, or an empty one once the subscriber has joined the channel."""
        if channel.seq is not None and subscriber.seq >= channel.seq:
            channel.attach(subscriber)
            return b""
        page = await read_with_retries(
            lambda: self._log.positions(channel.organisation, channel.session_id, subscriber.seq, subscriber.page)
        )
        if not page:  # a published event is committed, but a database replica may lag
            await asyncio.sleep(_REPLICA_SECONDS)
            return b""
        chunk = subscriber.take_page(map(frame_from_log, page))
        if any(item.event.type == events.SESSION_DELETED and item.seq <= subscriber.seq for item in page):
            subscriber.end_stream()
        return chunk

    async def _load_open_preview(self, organisation: str, session_id: str) -> tuple[PreviewStart, str] | None:
        try:
            lines = await self._command_client.get(redis_keys.open_preview_key(organisation, session_id))
            return live_entry_codec.decode_open_preview(cast("bytes | None", lines) or b"")
        except (RedisError, OSError, ValueError, LookupError, TypeError) as error:
            log.warning("preview of the current response cannot be read", action="tail.no_preview", reason=repr(error))
            return None

    def _on_entry(self, entry: Entry) -> None:
        channel = self._channels.get((entry.get(b"o", b""), entry.get(b"s", b"")))
        if channel is None:
            return
        try:
            items = live_entry_codec.decode_items(entry[b"b"])
        except (ValueError, LookupError, TypeError) as error:
            log.warning("live entry cannot be decoded", action="tail.bad_entry", reason=repr(error))
            return
        for item in items:
            channel.receive(item)

    def _on_shard_started(self, shard: int) -> None:
        for channel in self._channels.values():
            if redis_keys.shard_of(channel.session_id) == shard:
                channel.refresh()

    async def _watch_heads(self) -> None:
        """Compares each channel with the log every second, which recovers events whose publish was lost."""
        while True:
            await asyncio.sleep(self._heads_interval)
            watched = [channel for channel in self._channels.values() if channel.seq is not None]
            if not watched:
                continue
            try:
                heads = await self._log.heads([channel.session_id for channel in watched])
            except Exception as error:  # noqa: BLE001 - whatever the store raises, it is retried a second later
                log.warning(
                    "the newest positions of the log cannot be read; will retry",
                    action="tail.log_down",
                    reason=repr(error),
                )
                continue
            for channel in watched:
                self._compare_head(channel, heads.get(channel.session_id))

    def _compare_head(self, channel: SessionChannel, head: int | None) -> None:
        if head is None:
            channel.end_subscribers()
        elif channel.seq is not None and head > channel.seq:
            self._reader.recheck_position(redis_keys.shard_of(channel.session_id))
            channel.request_log_read()
