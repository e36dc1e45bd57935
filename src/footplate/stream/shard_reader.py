"""Reads live events from Redis for an API process, with one `XREAD` command at a time. The sessions are distributed
over shards, each with its own Redis stream. Only the shards that connected clients need are read.

Reading a shard starts after its newest entry. The reader notifies its caller of the start, and the caller reads earlier
events from the log. If Redis is down, redis-py reconnects until it succeeds.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, cast

import structlog
from redis.asyncio import Redis
from redis.typing import KeyT, StreamIdT

from footplate.stream import redis_connections, redis_keys

log = structlog.get_logger(__name__)

Entry = dict[bytes, bytes]

_MAX_ENTRIES: Final = 500
_PAUSE_SECONDS: Final = 1.0
_MIN_READ_SECONDS: Final = 0.003
"""Minimum time between reads, so that a burst is read in batches. An entry after a silence is never delayed."""


class ShardReader:
    def __init__(self, redis: Redis, *, on_entry: Callable[[Entry], None], on_started: Callable[[int], None]) -> None:
        self._redis = redis
        self._on_entry = on_entry
        self._on_started = on_started
        self._watched: Counter[int] = Counter()
        self._ids: dict[int, bytes] = {}
        self._to_recheck: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[object] | None = None
        self._changed = asyncio.Event()

    def watch(self, shard: int) -> bool:
        """Starts watching a shard. Returns True if it is already being read; otherwise `on_started` will be called."""
        self._watched[shard] += 1
        if shard in self._ids:
            return True
        self._changed.set()
        if self._reading is not None:
            self._reading.cancel()
        return False

    def unwatch(self, shard: int) -> None:
        """Stops watching a shard, from the next read on. The current read is not interrupted."""
        self._watched[shard] -= 1
        if self._watched[shard] <= 0:
            del self._watched[shard]
            self._ids.pop(shard, None)

    def recheck_position(self, shard: int) -> None:
        """Marks a shard after a missing entry. If Redis lost its data and its clock went back, our read position is in
        its future.
        """
        if shard in self._ids:
            self._to_recheck.add(shard)

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._read_once()
                except Exception:
                    # redis-py restores connections by itself. For any other error, clients are served from the log
                    # meanwhile.
                    log.exception("live stream cannot be read; will retry", action="reader.failed")
                    await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            if self._reading is not None:
                self._reading.cancel()

    async def _read_once(self) -> None:
        self._changed.clear()
        await self._find_positions()
        if not self._ids:
            await self._changed.wait()
            return
        self._reading = asyncio.create_task(self._read(dict(self._ids)), name="live read")
        if self._changed.is_set():
            self._reading.cancel()
        await asyncio.wait({self._reading})
        if not self._reading.cancelled():
            self._reading.result()

    async def _find_positions(self) -> None:
        for shard in [shard for shard in self._watched if shard not in self._ids]:
            last = await self._last_id(shard)
            if shard in self._watched:
                self._ids[shard] = last
                self._on_started(shard)
        while self._to_recheck:
            shard = self._to_recheck.pop()
            last = await self._last_id(shard)
            if shard in self._ids and _entry_order(last) < _entry_order(self._ids[shard]):
                self._ids[shard] = last

    async def _last_id(self, shard: int) -> bytes:
        newest = await self._redis.xrevrange(redis_keys.stream_key(shard), count=1)
        return cast("bytes", newest[0][0]) if newest else b"0-0"

    async def _read(self, positions: dict[int, bytes]) -> None:
        started_at = self._loop.time()
        streams = {redis_keys.stream_key(shard).encode(): shard for shard in positions}
        wanted: dict[KeyT, StreamIdT] = {stream: positions[shard] for stream, shard in streams.items()}
        response = await self._redis.xread(
            wanted,
            count=_MAX_ENTRIES,
            block=redis_connections.BLOCK_MILLISECONDS,
        )
        for stream, batch in cast("list[tuple[bytes, list[tuple[bytes, Entry]]]]", response or []):
            shard = streams[stream]
            for entry_id, entry in batch:
                if shard in self._ids:
                    self._ids[shard] = entry_id
                self._on_entry(entry)
        if (remaining := started_at + _MIN_READ_SECONDS - self._loop.time()) > 0:
            await asyncio.sleep(remaining)


def _entry_order(entry_id: bytes) -> tuple[int, int]:
    milliseconds, _, number = entry_id.partition(b"-")
    return int(milliseconds), int(number)
