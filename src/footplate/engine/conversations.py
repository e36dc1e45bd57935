"""Keeps the conversations of sessions that run here, so that a turn reads only what was added since the last.

Entries are never changed and only added under the epoch, so a kept beginning is always true; what another worker
added in between is read from where ours ends.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from footplate.domain.json import clean_object
from footplate.domain.ports import Entry
from footplate.domain.running import Claim, TurnStore


@dataclass(slots=True)
class _Kept:
    entries: list[Entry]
    size: int


class Conversations:
    def __init__(self, store: TurnStore, *, most: int) -> None:
        """`most`: bytes that are kept in all, as JSON; the sessions that ran longest ago go first."""
        self._store = store
        self._most = most
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
        self._make_room()
        return list(kept.entries)

    def add(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """After a successful append of the turn that holds the session."""
        kept = self._kept.get(claim.session_id)
        if kept is not None:
            size = _size(entries)
            kept.entries.extend(entries)
            kept.size += size
            self._size += size
            self._make_room()

    def _make_room(self) -> None:
        while self._size > self._most and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._size -= gone.size


def _size(entries: Sequence[Entry]) -> int:
    return sum(len(orjson.dumps(clean_object(entry.body))) for entry in entries)
