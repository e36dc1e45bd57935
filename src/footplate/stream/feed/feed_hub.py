"""Streams the feeds of organisations to all clients of one API process. Implements the `FeedStreams` port.

Each watched organisation has a channel. It reads new changes once, when Redis notifies it of one, and sends them to all
clients that can see them. One query per second finds changes whose notification was lost. A client that is behind reads
the database itself. The cost of a change does not depend on the number of sessions. Workers send notifications only for
feeds that an API process has announced.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self

import structlog
from redis.exceptions import RedisError

from footplate import failpoints
from footplate.domain.sessions import feed
from footplate.domain.sessions.feed import FeedChange, FeedViewer
from footplate.stream import redis_connections, redis_keys, sse
from footplate.stream.client_queue import QUEUE_BYTES, Subscriber, read_with_retries
from footplate.stream.feed.change_listener import ChangeListener

log = structlog.get_logger(__name__)

_PAGE_SIZE: Final = 200


class FeedReader(Protocol):
    """The interface (port) through which feeds are read. The store implements it."""

    async def number_changes(self, organisations: Sequence[str]) -> Mapping[str, int]:
        """Gives each committed change that has none a position. Returns the last position of each organisation."""

    async def read_changes(self, organisation: str, after: int, limit: int) -> Sequence[FeedChange]:
        """Returns the changes after a position, in order."""


@dataclass(frozen=True, slots=True)
class FeedFrame:
    change: FeedChange
    data: bytes

    @property
    def seq(self) -> int:
        return self.change.position


def _encode_change(change: FeedChange) -> FeedFrame:
    data = b"" if change.event is None else sse.encode_event(change.position, feed.to_wire(change))
    return FeedFrame(change, data)


class FeedChannel:
    """The feed of one organisation, shared by all its subscribers."""

    def __init__(self, organisation: str, reader: FeedReader) -> None:
        self.organisation = organisation
        self.position: int | None = None
        """The last position that was delivered; None until the head of the feed is known."""
        self.subscribers: set[Subscriber[FeedFrame]] = set()
        self.user_count = 0
        self._reader = reader
        self._needs_read = False
        self._task: asyncio.Task[None] | None = None

    async def find_head(self) -> int:
        head = (await self._reader.number_changes([self.organisation]))[self.organisation]
        if self.position is None:
            self.position = head
        return head

    def request_read(self) -> None:
        self._needs_read = True
        if self._task is None and self.position is not None:
            self._task = asyncio.create_task(self._read(), name=f"feed {self.organisation}")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _read(self) -> None:
        try:
            while self._needs_read:
                self._needs_read = False
                head = await self.find_head()
                await failpoints.hit("feed_numbered")
                await self._deliver_until(head)
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the next check retries
            log.warning("feed cannot be read; will retry", action="feed.read_failed", reason=repr(error))
        finally:
            self._task = None

    async def _deliver_until(self, head: int) -> None:
        assert self.position is not None
        while self.position < head:
            page = await self._reader.read_changes(self.organisation, self.position, _PAGE_SIZE)
            if not page:
                return
            before, self.position = self.position, page[-1].position
            frames = [_encode_change(change) for change in page]
            for subscriber in self.subscribers:
                if page[0].position > before + 1:
                    subscriber.fall_behind()  # changes were deleted, which it reports to its client
                else:
                    subscriber.queue_positions(before, frames)


class FeedHub:
    def __init__(
        self,
        url: str,
        reader: FeedReader,
        *,
        keepalive: float = 15.0,
        check_interval: float = 1.0,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._reader = reader
        self._keepalive = keepalive
        self._check_interval = check_interval
        self._queue_bytes = queue_bytes
        self._redis = redis_connections.create_reader_client(url)
        self._command_client = redis_connections.create_command_client(url)
        self._listener = ChangeListener(self._redis, self._on_change)
        self._channels: dict[str, FeedChannel] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.open_streams = 0
        """Number of clients that currently follow a feed."""

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._listener.run(), name="feed listener"),
            asyncio.create_task(self._check_heads(), name="feed heads"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await redis_connections.cancel_tasks(*self._tasks)
        self.end_streams()
        for channel in self._channels.values():
            channel.close()
        await self._redis.aclose()
        await self._command_client.aclose()

    def end_streams(self) -> None:
        """Ends every stream after its queued data. Otherwise a stopping server would wait for the clients."""
        for channel in self._channels.values():
            for subscriber in channel.subscribers:
                subscriber.end_stream()

    async def frames(self, viewer: FeedViewer, *, after: int | None = None) -> AsyncIterator[bytes]:
        """Yields the first item as soon as the start position is fixed. Raises `InvalidRequest` for a position from
        which the feed cannot resume.

        After a long silence, a frame with the position is sent. A client that sees few changes can thereby resume after
        a recent position.
        """
        with self._watch_organisation(viewer.organisation) as channel:
            if channel.position is None:
                await self._announce_feeds()
            head = await channel.find_head()
            if after is not None:
                await self._check_position(channel, after, head)
            subscriber = Subscriber[FeedFrame](
                head if after is None else after,
                keepalive=self._keepalive,
                limit=self._queue_bytes,
                is_shown=lambda frame: viewer.can_see(frame.change),
            )
            channel.subscribers.add(subscriber)
            self.open_streams += 1
            try:
                self._attach_if_current(channel, subscriber)
                yield sse.encode_start_position(head) if after is None else b""
                while (chunk := await subscriber.next_chunk(partial(self._catch_up, channel, subscriber))) is not None:
                    yield chunk or sse.encode_start_position(subscriber.seq)
                    subscriber.mark_sent()
            finally:
                self.open_streams -= 1
                channel.subscribers.discard(subscriber)
                subscriber.close()

    @contextmanager
    def _watch_organisation(self, organisation: str) -> Iterator[FeedChannel]:
        channel = self._channels.get(organisation)
        if channel is None:
            channel = self._channels[organisation] = FeedChannel(organisation, self._reader)
            self._listener.watch(organisation)
        channel.user_count += 1
        try:
            yield channel
        finally:
            channel.user_count -= 1
            if channel.user_count == 0:
                del self._channels[organisation]
                channel.close()
                self._listener.unwatch(organisation)

    async def _check_position(self, channel: FeedChannel, after: int, head: int) -> None:
        if after == head:
            return
        page = await self._reader.read_changes(channel.organisation, after, 1) if after < head else ()
        if not page or page[0].position != after + 1:
            raise feed.FeedPositionUnusable(after)

    def _attach_if_current(self, channel: FeedChannel, subscriber: Subscriber[FeedFrame]) -> bool:
        """Serves a subscriber that has all changes up to ours from the channel."""
        assert channel.position is not None
        subscriber.behind = subscriber.seq < channel.position
        return not subscriber.behind

    async def _catch_up(self, channel: FeedChannel, subscriber: Subscriber[FeedFrame]) -> bytes:
        """Returns one chunk of the feed, or an empty one once the subscriber has joined the channel."""
        if self._attach_if_current(channel, subscriber):
            return b""
        page = await read_with_retries(
            lambda: self._reader.read_changes(channel.organisation, subscriber.seq, subscriber.page)
        )
        if not page or page[0].position != subscriber.seq + 1:
            raise feed.FeedPositionUnusable(subscriber.seq)
        return subscriber.take_page(map(_encode_change, page))

    def _on_change(self, organisation: str) -> None:
        if (channel := self._channels.get(organisation)) is not None:
            channel.request_read()

    async def _announce_feeds(self) -> None:
        try:
            message = redis_keys.FEED_ANNOUNCEMENT + " ".join(self._channels)
            await self._command_client.publish(redis_keys.NUDGE_CHANNEL, message)
        except (RedisError, OSError) as error:
            log.warning("readers of feeds cannot be announced", action="feed.not_announced", reason=repr(error))

    async def _check_heads(self) -> None:
        """Compares each channel with the database every second, which recovers changes whose notification was lost."""
        while True:
            await asyncio.sleep(self._check_interval)
            watched = [channel for channel in self._channels.values() if channel.position is not None]
            if not watched:
                continue
            await self._announce_feeds()
            try:
                heads = await self._reader.number_changes([channel.organisation for channel in watched])
            except Exception as error:  # noqa: BLE001 - whatever the store raises, it is retried a second later
                log.warning("feeds cannot be checked; will retry", action="feed.down", reason=repr(error))
                continue
            for channel in watched:
                if channel.position is not None and heads[channel.organisation] > channel.position:
                    channel.request_read()
