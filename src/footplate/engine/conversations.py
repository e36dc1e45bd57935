"""Keeps the conversations of sessions that run here, so that a turn reads only what was added since the last.

Entries are never changed and only added under the epoch, so a kept beginning is always true; what another worker
added in between is read from where ours ends.
"""

from collections import OrderedDict
from collections.abc import Sequence

from footplate.domain.ports import Entry
from footplate.domain.running import Claim, TurnStore


class Conversations:
    def __init__(self, store: TurnStore, *, entries: int) -> None:
        """`entries`: how many are kept in all; the sessions that ran longest ago go first."""
        self._store = store
        self._most = entries
        self._count = 0
        self._kept: OrderedDict[str, list[Entry]] = OrderedDict()

    async def load(self, claim: Claim) -> list[Entry]:
        kept = self._kept.get(claim.session_id, [])
        if len(kept) > claim.entries:
            kept = []
        if len(kept) < claim.entries:
            kept = [*kept, *await self._store.entries(claim, len(kept))]
        self._keep(claim.session_id, kept)
        return list(kept)

    def add(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """After a successful append of the turn that holds the session."""
        if claim.session_id in self._kept:
            self._kept[claim.session_id].extend(entries)
            self._count += len(entries)

    def _keep(self, session_id: str, entries: list[Entry]) -> None:
        self._count += len(entries) - len(self._kept.pop(session_id, ()))
        self._kept[session_id] = entries
        while self._count > self._most and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._count -= len(gone)
