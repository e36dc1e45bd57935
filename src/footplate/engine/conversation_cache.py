"""Caches the conversations of sessions that run on this worker, so that a turn reads only the new entries.

Entries of a conversation never change and are only appended, so a cached beginning of a conversation stays valid. If
the session ran on another worker in between, only the entries after the cached ones are read from the database. The
cache is limited in bytes and in idle time, because many small, long-lived objects fragment memory.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from footplate.domain.json import JsonObject, clean_object
from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import Entry


@dataclass(slots=True)
class _CachedConversation:
    entries: list[Entry]
    size: int
    last_used: float = 0.0


class ConversationCache:
    def __init__(
        self, store: TurnStore, *, max_bytes: int, max_idle_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`max_bytes` limits the total size in bytes, as JSON; the least recently used sessions are evicted first.

        `max_idle_seconds`: sessions that were not used for this long are evicted when another one is used.
        """
        self._store = store
        self._max_bytes = max_bytes
        self._max_idle_seconds = max_idle_seconds
        self._clock = clock
        self._size = 0
        self._cached: OrderedDict[str, _CachedConversation] = OrderedDict()

    async def load(self, claim: Claim) -> list[Entry]:
        cached = self._cached.pop(claim.session_id, _CachedConversation([], 0))
        self._size -= cached.size
        if len(cached.entries) > claim.entries:
            cached = _CachedConversation([], 0)
        if len(cached.entries) < claim.entries:
            new = await self._store.entries(claim, len(cached.entries))
            cached = _CachedConversation([*cached.entries, *new], cached.size + _size(new))
        self._size += cached.size
        self._cached[claim.session_id] = cached
        self._mark_used(claim.session_id)
        return list(cached.entries)

    def add(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """Add entries after the turn that holds the session has appended them."""
        cached = self._cached.get(claim.session_id)
        if cached is not None:
            size = _size(entries)
            cached.entries.extend(entries)
            cached.size += size
            self._size += size
            self._mark_used(claim.session_id)

    def _mark_used(self, session_id: str) -> None:
        """Mark the session as most recently used, and evict others if necessary."""
        now = self._clock()
        self._cached[session_id].last_used = now
        self._cached.move_to_end(session_id)
        while len(self._cached) > 1:
            oldest = next(iter(self._cached.values()))
            if self._size <= self._max_bytes and now - oldest.last_used <= self._max_idle_seconds:
                return
            _, evicted = self._cached.popitem(last=False)
            self._size -= evicted.size


def _size(entries: Sequence[Entry]) -> int:
    return sum(len(_encode(entry.body)) for entry in entries)


def _encode(body: JsonObject) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # a lone surrogate; cleaning every text would take ten times as long
        return orjson.dumps(clean_object(body))
