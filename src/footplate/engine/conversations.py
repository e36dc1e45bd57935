"""Keeps the conversations of sessions that run here, so that a turn reads only what was added since the last.

Entries are never changed and only added under the epoch, so a kept beginning is always true; what another worker
added in between is read from where ours ends.

They are bounded in bytes and in time: small objects that outlive many turns hold on to the memory between them.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from footplate.domain.json import JsonObject, clean_object
from footplate.domain.ports import Entry
from footplate.domain.running import Claim, TurnStore


@dataclass(slots=True)
class _Kept:
    entries: list[Entry]
    size: int
    used: float = 0.0


class Conversations:
    def __init__(
        self, store: TurnStore, *, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`most`: bytes that are kept in all, as JSON; the sessions that were used longest ago go first.

        `seconds`: those that were not used for so long go when any other is used.
        """
        self._store = store
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._size = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def load(self, claim: Claim) -> list[Entry]:
        kept = self._kept.pop(claim.session_id, _Kept([], 0))
        self._size -= kept.size
        if len(kept.entries) > claim.entries:
            kept = _Kept([], 0)
        if len(kept.entries) < claim.entries:
            new = await self._store.entries(claim, len(kept.entries))
            kept = _Kept([*kept.entries, *new], kept.size + _size(new))
        self._size += kept.size
        self._kept[claim.session_id] = kept
        self._use(claim.session_id)
        return list(kept.entries)

    def add(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """After a successful append of the turn that holds the session."""
        kept = self._kept.get(claim.session_id)
        if kept is not None:
            size = _size(entries)
            kept.entries.extend(entries)
            kept.size += size
            self._size += size
            self._use(claim.session_id)

    def _use(self, session_id: str) -> None:
        """It is the last to go now, and who has to go goes."""
        now = self._clock()
        self._kept[session_id].used = now
        self._kept.move_to_end(session_id)
        while len(self._kept) > 1:
            oldest = next(iter(self._kept.values()))
            if self._size <= self._most and now - oldest.used <= self._seconds:
                return
            _, gone = self._kept.popitem(last=False)
            self._size -= gone.size


def _size(entries: Sequence[Entry]) -> int:
    return sum(len(_encode(entry.body)) for entry in entries)


def _encode(body: JsonObject) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # half of a surrogate pair: cleaning every text takes ten times as long
        return orjson.dumps(clean_object(body))
