"""Reads the events of an archived session: older positions from the archive, later ones from database rows.

The boundary is the archive's last position, not the rows that still exist: while an archive is pruned, rows below the
boundary may remain, and they are ignored. The order of reads matters, because a session may be archived, or archived
again, in between: code that reads rows *after* it looked up the archive must look it up again. Sessions without an
archive do not use this module.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from footplate.domain import threads
from footplate.domain.errors import NotFound
from footplate.domain.events import Event, Position
from footplate.domain.services import EventPage
from footplate.store import records
from footplate.store.archives import Archive, Archives, Moved, lost
from footplate.store.archives_format import Line
from footplate.store.database import Database, patiently

T = TypeVar("T")
Rows = Sequence[records.Row]

_PATIENCE_SECONDS: Final = 5.0


class ArchivedReads:
    def __init__(self, database: Database, archives: Archives) -> None:
        self._database = database
        self._archives = archives

    async def positions(
        self, organisation: str, session_id: str, after_seq: int, limit: int, *, last_seq: int | None = None
    ) -> list[Position]:
        """Reads positions in order. `last_seq`, here and below: the last position that belongs to a fork's history."""

        async def read(archive: Archive) -> list[Position]:
            found: list[Position] = []
            async for line in self._archives.lines(archive, "events", after=after_seq, before=_beyond(last_seq)):
                found.append(_position(line, line["processed_at"]))
                if len(found) == limit:
                    return found
            after = max(after_seq, archive.last_seq)
            rows = await self._database.fetch(
                "positions", session_id, organisation, after, limit - len(found), last_seq
            )
            await self._same(archive)
            return [*found, *map(records.position, rows)]

        return await through(self._archives, session_id, read)

    async def ascending(
        self,
        session_id: str,
        page: EventPage,
        rows: Callable[[int, int], Awaitable[Rows]],
        *,
        last_seq: int | None = None,
    ) -> list[Position]:
        """Reads a page, oldest first. `rows(after_seq, limit)` reads the matching database rows."""
        after_seq = page.after_seq or 0

        async def read(archive: Archive) -> list[Position]:
            found: list[Position] = []
            async for line in self._archives.lines(archive, "events", after=after_seq, before=_beyond(last_seq)):
                if _matches(line, page, last_seq):
                    found.append(_position(line, _moment(line, last_seq)))
                    if len(found) == page.limit:
                        return found
            later = await rows(max(after_seq, archive.last_seq), page.limit - len(found))
            await self._same(archive)
            return [*found, *map(records.position, later)]

        return await through(self._archives, session_id, read)

    async def descending(
        self, session_id: str, page: EventPage, rows: Rows, *, last_seq: int | None = None
    ) -> list[Position]:
        """Reads a page, newest first. `rows` is the page from database rows alone, which the caller has read before."""

        async def read(archive: Archive) -> list[Position]:
            found = [records.position(row) for row in rows if row["seq"] > archive.last_seq]
            if len(found) == page.limit:
                return found
            before = archive.last_seq + 1 if page.after_seq is None else page.after_seq
            before = before if last_seq is None else min(before, last_seq + 1)
            async for line in self._archives.lines(archive, "events", before=before, descending=True):
                if _matches(line, page, last_seq):
                    found.append(_position(line, _moment(line, last_seq)))
                    if len(found) == page.limit:
                        break
            return found

        return await through(self._archives, session_id, read)

    async def _same(self, archive: Archive) -> None:
        current = await self._archives.find(archive.session_id)
        if current is None or current.object_key != archive.object_key:
            raise Moved


async def through(archives: Archives, session_id: str, read: Callable[[Archive], Awaitable[T]]) -> T:
    """Calls `read` with the session's archive, again if the archive was replaced meanwhile."""
    archive: Archive | None = None

    async def attempt() -> T:
        nonlocal archive
        archive = await archives.find(session_id)
        if archive is None:  # deleted meanwhile
            raise NotFound("session", session_id)
        return await read(archive)

    try:
        return await patiently(attempt, on=(Moved,), seconds=_PATIENCE_SECONDS, wait_max=0.5)
    except Moved as error:
        assert archive is not None
        raise lost(archive) from error


def _beyond(last_seq: int | None) -> int | None:
    return None if last_seq is None else last_seq + 1


def _matches(line: Line, page: EventPage, last_seq: int | None) -> bool:
    """Applies the same conditions as the `where` clause of the query `events_ascending`."""
    if line["ref_seq"] is not None or (page.types and line["type"] not in page.types):
        return False
    if not threads.shown(line["type"], line["body"], page.thread_id):
        return False
    bounds = (page.created_gt, page.created_gte, page.created_lt, page.created_lte)
    if bounds == (None, None, None, None):
        return True
    text = _moment(line, last_seq)
    if text is None:
        return False
    moment = _time(text)
    return (
        (page.created_gt is None or moment > page.created_gt)
        and (page.created_gte is None or moment >= page.created_gte)
        and (page.created_lt is None or moment < page.created_lt)
        and (page.created_lte is None or moment <= page.created_lte)
    )


def _moment(line: Line, last_seq: int | None) -> str | None:
    taken: str | None = line["taken_at"] or line["processed_at"]
    if last_seq is not None and (line.get("taken_seq") or 0) > last_seq:
        taken = line["processed_at"]
    return taken


def _position(line: Line, processed_at: str | None) -> Position:
    return Position(
        seq=line["seq"],
        event=Event(line["type"], line["body"] or {}, line["event_id"]),
        created_at=_time(line["created_at"]),
        processed_at=None if processed_at is None else _time(processed_at),
        turn_id=line["turn_id"],
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
