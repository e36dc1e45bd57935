"""The interface (port) through which streams read the session log. The store implements it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from footplate.domain.sessions.events import Position


class LogReader(Protocol):
    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> Sequence[Position]:
        """Returns the log positions after `after_seq`, ordered by `seq`, including the second positions of queued
        inputs.
        """

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """Returns the last `seq` of each session, or 0 if it has none. A session that is not in the result does not
        exist.
        """
