"""An in-memory log for tests of the stream: positions by session, and switches that simulate failures."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from footplate.domain.errors import Unavailable
from footplate.domain.sessions.events import Event, Position


class MemoryLog:
    def __init__(self) -> None:
        self.sessions: dict[str, list[Position]] = defaultdict(list)
        self.down = False
        self.reads = 0

    def append(self, session_id: str, *events: Event) -> list[Position]:
        log = self.sessions[session_id]
        now = datetime.now(UTC)
        fresh = [Position(len(log) + number, event, now, now) for number, event in enumerate(events, 1)]
        log.extend(fresh)
        return fresh

    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> Sequence[Position]:
        self._check()
        assert organisation
        self.reads += 1
        return self.sessions.get(session_id, [])[after_seq : after_seq + limit]

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        self._check()
        return {item: len(self.sessions[item]) for item in session_ids if item in self.sessions}

    def _check(self) -> None:
        if self.down:
            raise Unavailable("The database does not answer.")
