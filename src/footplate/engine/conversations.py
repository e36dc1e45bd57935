"""Keeps the conversations of sessions that run here, so that a turn reads only what was added since the last.

Entries are never changed and only added under the epoch, so a kept beginning is always true; what another worker
added in between is read from where ours ends.
"""

from collections import OrderedDict

from footplate.domain.ports import Entry
from footplate.domain.running import Claim, TurnStore


class Conversations:
    def __init__(self, store: TurnStore, *, sessions: int) -> None:
        self._store = store
        self._sessions = sessions
        self._kept: OrderedDict[str, list[Entry]] = OrderedDict()

    async def load(self, claim: Claim) -> list[Entry]:
        kept = self._kept.pop(claim.session_id, [])
        if len(kept) > claim.entries:
            kept = []
        if len(kept) < claim.entries:
            kept = [*kept, *await self._store.entries(claim, len(kept))]
        self._keep(claim.session_id, kept)
        return list(kept)

    def add(self, claim: Claim, entries: list[Entry]) -> None:
        """After a successful append of the turn that holds the session."""
        if claim.session_id in self._kept:
            self._kept[claim.session_id].extend(entries)

    def _keep(self, session_id: str, entries: list[Entry]) -> None:
        self._kept[session_id] = entries
        while len(self._kept) > self._sessions:
            self._kept.popitem(last=False)
