"""Counts the requests and the open streams of organisations and members in Redis, across all API processes.

Both counts protect other organisations, and are no security decision. If Redis does not respond, requests are not
limited, and streams are limited for each process alone.
"""

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from footplate.domain.errors import FootplateError
from footplate.domain.organisations.limits import (
    RATE_WINDOW_SECONDS,
    AppliedLimit,
    OrganisationLimitExceeded,
    StreamLease,
)
from footplate.domain.organisations.principals import Principal
from footplate.stream import redis_connections, redis_keys

log = structlog.get_logger(__name__)

_MAX_BLOCK_SECONDS: Final = 1.0
_MAX_BLOCKED: Final = 10_000
_PAUSE_SECONDS: Final = 2.0
"""How long Redis is not asked after it did not respond."""
_LEASE_SECONDS: Final = 10.0
_RENEWAL_SECONDS: Final = 3.0


class RequestRates:
    """Counts requests in a sliding window. A refused request is not counted.

    After a refusal, this process refuses further requests without asking Redis, until the window has room again.
    """

    def __init__(self, redis: Redis) -> None:
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix="footplate:requests",
            connection_pool=redis.connection_pool,  # pyrefly: ignore[bad-argument-type]  # documented, but not in the annotation
        )
        self._window = SlidingWindowCounterRateLimiter(storage)
        self._blocked_until: dict[str, float] = {}
        self._paused_until = 0.0

    async def count_request(self, applied: Sequence[AppliedLimit]) -> None:
        """Raises `OrganisationLimitExceeded` if one of the limits is reached.

        A member's limit comes first: its refused requests must not use up the limit of the organisation.
        """
        now = time.monotonic()
        for limit in applied:
            if (blocked := self._blocked_until.get(limit.key, 0.0)) > now:
                raise OrganisationLimitExceeded(limit, retry_after=blocked - now)
        if now < self._paused_until:
            return
        try:
            for limit in applied:
                if not await self._window.hit(_window_item(limit), limit.key):
                    await self._block(limit)
        except (RedisError, OSError) as error:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            log.warning("requests cannot be counted", action="limit.unchecked", reason=repr(error))

    async def read_rate(self, limit: AppliedLimit) -> float | None:
        """Returns the requests per second in the window."""
        item = _window_item(limit)
        try:
            remaining = (await self._window.get_window_stats(item, limit.key)).remaining
        except (RedisError, OSError):
            return None
        return (item.amount - remaining) / RATE_WINDOW_SECONDS

    async def _block(self, limit: AppliedLimit) -> None:
        stats = await self._window.get_window_stats(_window_item(limit), limit.key)
        seconds = max(0.0, stats.reset_time - time.time())
        if len(self._blocked_until) > _MAX_BLOCKED:
            self._blocked_until.clear()
        self._blocked_until[limit.key] = time.monotonic() + min(seconds, _MAX_BLOCK_SECONDS)
        raise OrganisationLimitExceeded(limit, retry_after=seconds)


def _window_item(limit: AppliedLimit) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(limit.value * RATE_WINDOW_SECONDS, RATE_WINDOW_SECONDS)


class StreamCounts:
    """Counts open streams. Each one has a lease in Redis, which its process renews, so that the streams of a killed
    process stop counting after a few seconds. The clocks of the API hosts must not differ by more than that.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._open: dict[str, Principal] = {}
        self._counts: Counter[str] = Counter()
        """The open streams of this process, by Redis key."""
        self._leased: set[str] = set()
        self._removals: set[asyncio.Task[None]] = set()

    async def open_stream(self, principal: Principal, applied: Sequence[AppliedLimit]) -> StreamLease:
        """Raises `OrganisationLimitExceeded` if one of the limits is reached."""
        for limit in applied:
            # Usually this suffices. Other processes may open a stream meanwhile, so it is counted again with its lease.
            own = self._counts[_streams_key(limit)]
            if own >= limit.value or (await self.count_open(limit) or 0) >= limit.value:
                raise OrganisationLimitExceeded(limit)
        stream_id = str(uuid.uuid4())
        self._open[stream_id] = principal
        self._counts.update(_streams_keys(principal))
        lease = _OpenStream(self, stream_id)
        try:
            counts = await self._write_leases({stream_id: principal}) if applied else {}
        except BaseException:
            lease.release()
            raise
        for limit in applied:
            if counts.get(_streams_key(limit), 0) > limit.value:
                lease.release()
                raise OrganisationLimitExceeded(limit)
        return lease

    async def count_open(self, limit: AppliedLimit) -> int | None:
        """Returns the open streams of all processes."""
        try:
            return int(await self._redis.zcount(_streams_key(limit), time.time(), "+inf"))
        except (RedisError, OSError):
            return None

    def release(self, stream_id: str) -> None:
        principal = self._open.pop(stream_id, None)
        if principal is None:
            return
        for key in _streams_keys(principal):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
        if stream_id in self._leased:
            self._leased.discard(stream_id)
            removal = asyncio.create_task(self._remove_lease(stream_id, principal))
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)

    @asynccontextmanager
    async def renewing(self, is_limited: Callable[[str], Awaitable[bool]]) -> AsyncIterator[None]:
        """Renews the leases of organisations whose streams are limited. A stream that was opened before the limit was
        set gets a lease here.
        """
        task = asyncio.create_task(self._renew_forever(is_limited), name="stream leases")
        try:
            yield
        finally:
            await redis_connections.cancel_tasks(task)

    async def _renew_forever(self, is_limited: Callable[[str], Awaitable[bool]]) -> None:
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            try:
                organisations = {principal.organisation for principal in self._open.values()}
                limited = {each for each in organisations if await is_limited(each)}
                streams = {
                    stream_id: principal
                    for stream_id, principal in self._open.items()
                    if principal.organisation in limited
                }
                if streams:
                    await self._write_leases(streams)
            except FootplateError as error:  # the database does not respond
                log.warning("leases of streams could not be renewed", action="limit.unchecked", reason=error.message)

    async def _write_leases(self, streams: Mapping[str, Principal]) -> Mapping[str, int]:
        """Returns the number of open streams by Redis key. Empty: Redis does not respond."""
        now, by_key = time.time(), defaultdict[str, dict[str, float]](dict)
        for stream_id, principal in streams.items():
            for key in _streams_keys(principal):
                by_key[key][stream_id] = now + _LEASE_SECONDS
        try:
            async with self._redis.pipeline() as pipe:
                for key, leases in by_key.items():
                    pipe.zremrangebyscore(key, "-inf", now)
                    pipe.zadd(key, leases)
                    pipe.expire(key, int(_LEASE_SECONDS))
                    pipe.zcard(key)
                counts = (await pipe.execute())[3::4]
        except (RedisError, OSError) as error:
            log.warning("open streams cannot be counted", action="limit.unchecked", reason=repr(error))
            return {}
        self._leased.update(stream_id for stream_id in streams if stream_id in self._open)
        return dict(zip(by_key, counts, strict=True))

    async def _remove_lease(self, stream_id: str, principal: Principal) -> None:
        with suppress(RedisError, OSError):  # it expires
            async with self._redis.pipeline() as pipe:
                for key in _streams_keys(principal):
                    pipe.zrem(key, stream_id)
                await pipe.execute()


class _OpenStream:
    def __init__(self, counts: StreamCounts, stream_id: str) -> None:
        self._counts = counts
        self._stream_id = stream_id

    def release(self) -> None:
        self._counts.release(self._stream_id)


def _streams_keys(principal: Principal) -> tuple[str, str]:
    organisation = principal.organisation
    return redis_keys.open_streams_key(organisation), redis_keys.open_streams_key(organisation, principal.id)


def _streams_key(limit: AppliedLimit) -> str:
    return redis_keys.open_streams_key(limit.organisation, limit.member.id if limit.member else None)
