"""Nudges: messages in Redis that tell the worker of a session to check its inputs now.

A nudge only saves time: if it is lost, the turn reads its inputs at its next check of the log. Sending therefore never
fails, and listening never delays a turn. All nudges use one channel, because the API does not know which worker runs a
session. Each worker subscribes to it once. On the same channel, API processes announce the feeds that have readers.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import structlog
from redis.exceptions import RedisError

from footplate.stream import redis_connections, redis_keys
from footplate.stream.feed.watched_feeds import WatchedFeeds

log = structlog.get_logger(__name__)

Callback = Callable[[], None]

_POLL_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0


class NudgeSender:
    """Sends nudges."""

    def __init__(self, url: str) -> None:
        self._redis = redis_connections.create_command_client(url)

    async def nudge(self, session_id: str) -> None:
        try:
            await self._redis.publish(redis_keys.NUDGE_CHANNEL, session_id)
        except (RedisError, OSError) as error:
            log.warning(
                "notification not delivered; the turn will find the input at its next check",
                action="nudge.lost",
                reason=repr(error),
            )

    async def aclose(self) -> None:
        await self._redis.aclose()


class NudgeListener:
    """Receives nudges in a worker, with one connection and one subscription for all its turns."""

    def __init__(self, url: str) -> None:
        self._redis = redis_connections.create_reader_client(url)
        self.watched_feeds = WatchedFeeds()
        self._callbacks: dict[str, list[Callback]] = {}
        self._stopping = False
        """Set in addition to the cancellation, which can be lost while redis-py aborts a read."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="nudge listener")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        if self._task is not None:
            await redis_connections.cancel_tasks(self._task)
        await self._redis.aclose()

    @contextmanager
    def watch(self, session_id: str, callback: Callback) -> Iterator[None]:
        """Calls `callback` for each nudge. It must be quick and must not raise."""
        callbacks = self._callbacks.setdefault(session_id, [])
        callbacks.append(callback)
        try:
            yield
        finally:
            callbacks.remove(callback)
            if not callbacks:
                self._callbacks.pop(session_id, None)

    async def _run(self) -> None:
        """Restarts the listener after errors. redis-py itself reconnects and resubscribes."""
        while not self._stopping:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                log.warning(
                    "notifications of new input cannot be received; will retry", action="nudge.down", reason=repr(error)
                )
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self) -> None:
        async with self._redis.pubsub() as pubsub:
            await pubsub.subscribe(redis_keys.NUDGE_CHANNEL)
            while not self._stopping:
                message: dict[str, Any] | None = await pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=_POLL_SECONDS
                )
                if message is not None:
                    self._call(message["data"].decode(errors="replace"))

    def _call(self, message: str) -> None:
        if message.startswith(redis_keys.FEED_ANNOUNCEMENT):
            self.watched_feeds.renew(message.removeprefix(redis_keys.FEED_ANNOUNCEMENT).split())
        for callback in tuple(self._callbacks.get(message, ())):
            callback()
