"""Receives notifications from Redis that the sessions of an organisation have changed.

A notification only saves time: if it is lost, the feed finds the change at its next check of the database. Only the
channels of watched organisations are subscribed, with one connection for all of them.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from footplate.stream import redis_keys

log = structlog.get_logger(__name__)

_POLL_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0


class ChangeListener:
    def __init__(self, redis: Redis, on_change: Callable[[str], None]) -> None:
        """`on_change` is called with the organisation. It is also called when its channel was subscribed, because an
        earlier notification may have been missed.
        """
        self._redis = redis
        self._on_change = on_change
        self._watched: dict[bytes, str] = {}
        """Organisations by channel."""
        self._updated = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def watch(self, organisation: str) -> None:
        self._watched[redis_keys.feed_channel(organisation).encode()] = organisation
        self._interrupt_read()

    def unwatch(self, organisation: str) -> None:
        del self._watched[redis_keys.feed_channel(organisation).encode()]
        self._interrupt_read()

    def _interrupt_read(self) -> None:
        self._updated.set()
        if self._reading is not None:
            self._reading.cancel()

    async def run(self) -> None:
        """Restarts the listener after errors. redis-py itself reconnects and resubscribes."""
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await self._listen(pubsub)
            except (RedisError, OSError) as error:
                log.warning(
                    "notifications of changes cannot be received; will retry", action="feed.down", reason=repr(error)
                )
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self, pubsub: PubSub) -> None:
        subscribed: set[bytes] = set()
        while True:
            self._updated.clear()
            if missing := self._watched.keys() - subscribed:
                await pubsub.subscribe(*missing)
                for channel in missing & self._watched.keys():
                    self._on_change(self._watched[channel])
            if unneeded := subscribed - self._watched.keys():
                await pubsub.unsubscribe(*unneeded)
            subscribed = (subscribed | missing) - unneeded
            if not subscribed:
                await self._updated.wait()
            elif not self._updated.is_set():
                await self._read_until_updated(pubsub)

    async def _read_until_updated(self, pubsub: PubSub) -> None:
        self._reading = reading = asyncio.create_task(self._read(pubsub), name="feed notifications")
        try:
            await asyncio.wait({reading})
            if not reading.cancelled():
                reading.result()
        finally:
            reading.cancel()
            self._reading = None

    async def _read(self, pubsub: PubSub) -> None:
        while not self._updated.is_set():
            message: dict[str, Any] | None = await pubsub.get_message(
                ignore_subscribe_messages=True, timeout=_POLL_SECONDS
            )
            if message is not None and (organisation := self._watched.get(message["channel"])) is not None:
                self._on_change(organisation)
