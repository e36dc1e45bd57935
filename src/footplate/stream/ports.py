"""What the tail needs of the log. The store implements it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from footplate.domain.events import Position


class LogReader(Protocol):
    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> Sequence[Position]:
        """Log positions after `after_seq` in order of `seq`, the second positions of queued inputs included."""

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """The last `seq` of each session, 0 before its first. A session that is absent does not exist (any more)."""
