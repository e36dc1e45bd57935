"""Publishes live events to Redis in the background, in order. Publishing never fails and never delays the caller.

Callers add Redis commands to one bounded queue per process, and a background task sends them in one pipeline. Commands
that do not fit into the queue or cannot be sent are dropped. Every reader notices the gap and reads the log instead.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from types import TracebackType
from typing import Final, Self

import structlog
from redis.exceptions import RedisError

from footplate.domain.sessions.events import Position
from footplate.stream import live_entry_codec, redis_connections, redis_keys
from footplate.stream.feed.watched_feeds import WatchedFeeds
from footplate.stream.live_entry_codec import PublishedItem, RedisCommand
from footplate.telemetry import metrics

log = structlog.get_logger(__name__)

_QUEUE_BYTES: Final = 8 * 1024 * 1024
_BATCH: Final = 200
_SEND_SECONDS: Final = 2 * redis_connections.COMMAND_SECONDS


class LivePublisher:
    """Publishes entries in order. There is one instance per process."""

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int = _QUEUE_BYTES,
        watched_feeds: WatchedFeeds | None = None,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        """`watched_feeds`: only their readers are notified of changes. None: those of every feed. `on_change` is called
        with the organisation of each change. It must be quick and must not raise.
        """
        self._redis = redis_connections.create_command_client(url)
        self._max_bytes = max_bytes
        self._watched_feeds = watched_feeds
        self._on_change = on_change
        self._queue: deque[tuple[Sequence[RedisCommand], int, float]] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sender: asyncio.Task[None] | None = None
        self._failing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def publish(self, organisation: str, session_id: str, positions: Sequence[Position]) -> None:
        """Publishes committed events. Returns immediately."""
        if not positions:
            return
        feed_commands = self.feed_commands(organisation, [positions])
        entry = live_entry_codec.append_command(
            redis_keys.stream_key(redis_keys.shard_of(session_id)), session_id, organisation, [positions]
        )
        if any(
            item.event.type in live_entry_codec.PREVIEW_CLOSING_TYPES | live_entry_codec.PREVIEWED_TYPES
            for item in positions
        ):
            self.enqueue((("DEL", redis_keys.open_preview_key(organisation, session_id)), entry, *feed_commands))
        else:
            self.enqueue((entry, *feed_commands))

    def notify_feed(self, organisation: str) -> None:
        """Notifies the readers of the organisation's feed of a change without an event, such as a new session."""
        self.enqueue((("PUBLISH", redis_keys.feed_channel(organisation), ""),))
        if self._on_change is not None:
            self._on_change(organisation)

    def feed_commands(self, organisation: str, items: Sequence[PublishedItem]) -> Sequence[RedisCommand]:
        """Returns the command that notifies the readers of the organisation's feed, if there are any and one of the
        events is a change.
        """
        is_watched = self._watched_feeds is None or self._watched_feeds.is_watched(organisation)
        if not (is_watched or self._on_change) or not live_entry_codec.has_change(items):
            return ()
        if self._on_change is not None:
            self._on_change(organisation)
        return (("PUBLISH", redis_keys.feed_channel(organisation), ""),) if is_watched else ()

    def enqueue(self, commands: Sequence[RedisCommand]) -> bool:
        """Queues commands that belong together. Returns False if the queue is full."""
        size = sum(len(part) for command in commands for part in command if isinstance(part, bytes))
        if self._bytes + size > self._max_bytes:
            self._log_state_change(failing=True, reason="the queue is full")
            return False
        self._queue.append((commands, size, time.monotonic()))
        self._bytes += size
        self._idle.clear()
        self._ready.set()
        if self._sender is None or self._sender.done():
            # A separate context, because the task outlives the request or turn that starts it.
            self._sender = asyncio.create_task(self._send_all(), name="live publisher", context=Context())
        return True

    @property
    def is_busy(self) -> bool:
        """Whether commands are queued or being sent, so that new ones have to wait."""
        return not self._idle.is_set()

    async def wait_until_sent(self, *, seconds: float = _SEND_SECONDS) -> bool:
        """Waits until all queued commands were sent or dropped. Returns False after the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def aclose(self) -> None:
        await self.wait_until_sent()
        if self._sender is not None:
            await redis_connections.cancel_tasks(self._sender)
        await self._redis.aclose()

    async def _send_all(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            try:
                while self._queue:
                    oldest = self._queue[0][2]
                    await self._send_batch(self._next_batch())
                    metrics.LOG_LAG.observe(time.monotonic() - oldest)
            finally:
                self._idle.set()

    def _next_batch(self) -> list[RedisCommand]:
        batch: list[RedisCommand] = []
        while self._queue and len(batch) < _BATCH:
            commands, size, _ = self._queue.popleft()
            batch.extend(commands)
            self._bytes -= size
        return batch

    async def _send_batch(self, batch: Sequence[RedisCommand]) -> None:
        try:
            async with asyncio.timeout(_SEND_SECONDS), self._redis.pipeline(transaction=False) as pipeline:
                for command in batch:
                    pipeline.execute_command(*command)
                await pipeline.execute()
        except (RedisError, OSError) as error:
            self._log_state_change(failing=True, reason=repr(error))
        else:
            self._log_state_change(failing=False)

    def _log_state_change(self, *, failing: bool, reason: str = "") -> None:
        """Logs only changes of state, not each of the many dropped entries."""
        if failing and not self._failing:
            message = "live events cannot be published; streams read the log instead"
            log.warning(message, action="live.down", reason=reason)
        elif self._failing and not failing:
            log.info("live events are published again", action="live.up")
        self._failing = failing
