"""Reads the feed of an organisation: the changes of its sessions, in one order. Implements the `FeedReader` port.

Triggers write a row for each change, in the transaction of the change. A reader gives the committed rows their
positions, so a change that commits later always has a higher position.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from footplate.domain.errors import NotFound
from footplate.domain.organisations.visibility import SessionAudience
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.feed import FeedChange
from footplate.store import row_mapping
from footplate.store.database import Database

ReadPositions = Callable[[str, str, int, int], Awaitable[Sequence[Position]]]
"""Reads the log of a session, also from its archive: organisation, session, position before, number of positions."""


@dataclass(frozen=True, slots=True)
class Feed:
    database: Database
    read_positions: ReadPositions

    async def number_changes(self, organisations: Sequence[str]) -> Mapping[str, int]:
        rows = await self.database.fetch("number_feeds", [*organisations])
        return {row["organisation"]: row["position"] for row in rows}

    async def read_changes(self, organisation: str, after: int, limit: int) -> Sequence[FeedChange]:
        rows = await self.database.fetch("feed_rows", organisation, after, limit)
        return [await self._load_change(organisation, row) for row in rows]

    async def _load_change(self, organisation: str, row: row_mapping.Row) -> FeedChange:
        audience = SessionAudience(row["owner"], row["visible_to"], frozenset(row["project_ids"]))
        return FeedChange(
            position=row["position"],
            session_id=row["session_id"],
            session_title=row["title"],
            audience=audience if row["visible_to"] is not None else None,
            event=await self._load_event(organisation, row),
        )

    async def _load_event(self, organisation: str, row: row_mapping.Row) -> Position | None:
        seq, at = row["seq"], row["created_at"]
        if row["own_id"] is not None:
            return Position(seq, Event(row["type"], row["own_body"] or {}, row["own_id"]), at, at)
        if row["event_id"] is not None:
            return Position(seq, Event(row["type"], row["body"] or {}, row["event_id"]), at, row["processed_at"])
        if not row["has_session"]:
            return None
        try:
            found = await self.read_positions(organisation, row["session_id"], seq - 1, 1)
        except NotFound:  # deleted meanwhile
            return None
        return found[0] if found and found[0].seq == seq else None


class FeedExpiry:
    """Deletes old changes from all feeds. First numbers every change, also of organisations whose feed has no reader: a
    client that resumes later must be able to tell that changes are missing.
    """

    def __init__(self, database: Database, older_than: timedelta) -> None:
        self._database = database
        self._older_than = older_than

    async def run(self) -> None:
        while await self._database.fetch("number_backlog"):
            pass
        await self._database.fetch("expire_feed", self._older_than)
