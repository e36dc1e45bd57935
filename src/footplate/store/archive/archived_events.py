"""Reads the events of an archived session: older events from the archive, newer events from database rows.

The last position in the archive is the boundary. Rows up to that position may still exist while they are being deleted,
and are ignored. A session may be archived again between the lookup of its archive and the read of its rows. Code that
reads rows must therefore look up the archive again afterwards.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from footplate.domain.errors import NotFound
from footplate.domain.ports.api import EventPage
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Position
from footplate.store import row_mapping
from footplate.store.archive.format import ArchiveLine
from footplate.store.archive.reader import Archive, ArchiveReader, ArchiveReplaced, archive_missing
from footplate.store.database import Database, call_with_retries

T = TypeVar("T")
Rows = Sequence[row_mapping.Row]

_RETRY_SECONDS: Final = 5.0


class ArchivedEvents:
    def __init__(self, database: Database, archives: ArchiveReader) -> None:
        self._database = database
        self._archives = archives

    async def positions(
        self, organisation: str, session_id: str, after_seq: int, limit: int, *, last_seq: int | None = None
    ) -> list[Position]:
        """Reads positions in order. `last_seq`, here and below: the last position that belongs to a fork's history."""

        async def read(archive: Archive) -> list[Position]:
            found: list[Position] = []
            async for line in self._archives.read_lines(
                archive, "events", after=after_seq, before=_exclusive_bound(last_seq)
            ):
                found.append(_position(line, line["processed_at"]))
                if len(found) == limit:
                    return found
            after = max(after_seq, archive.last_seq)
            rows = await self._database.fetch(
                "positions", session_id, organisation, after, limit - len(found), last_seq
            )
            await self._ensure_unchanged(archive)
            return [*found, *map(row_mapping.load_position, rows)]

        return await read_archive_with_retries(self._archives, session_id, read)

    async def page_ascending(
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
            async for line in self._archives.read_lines(
                archive, "events", after=after_seq, before=_exclusive_bound(last_seq)
            ):
                if _matches(line, page, last_seq):
                    found.append(_position(line, _processing_time(line, last_seq)))
                    if len(found) == page.limit:
                        return found
            later = await rows(max(after_seq, archive.last_seq), page.limit - len(found))
            await self._ensure_unchanged(archive)
            return [*found, *map(row_mapping.load_position, later)]

        return await read_archive_with_retries(self._archives, session_id, read)

    async def page_descending(
        self, session_id: str, page: EventPage, rows: Rows, *, last_seq: int | None = None
    ) -> list[Position]:
        """Reads a page, newest first. `rows` is the page from database rows alone, which the caller has read before."""

        async def read(archive: Archive) -> list[Position]:
            found = [row_mapping.load_position(row) for row in rows if row["seq"] > archive.last_seq]
            if len(found) == page.limit:
                return found
            before = archive.last_seq + 1 if page.after_seq is None else page.after_seq
            before = before if last_seq is None else min(before, last_seq + 1)
            async for line in self._archives.read_lines(archive, "events", before=before, descending=True):
                if _matches(line, page, last_seq):
                    found.append(_position(line, _processing_time(line, last_seq)))
                    if len(found) == page.limit:
                        break
            return found

        return await read_archive_with_retries(self._archives, session_id, read)

    async def _ensure_unchanged(self, archive: Archive) -> None:
        current = await self._archives.find_archive(archive.session_id)
        if current is None or current.object_key != archive.object_key:
            raise ArchiveReplaced


async def read_archive_with_retries(
    archives: ArchiveReader, session_id: str, read: Callable[[Archive], Awaitable[T]]
) -> T:
    """Calls `read` with the session's archive, again if the archive was replaced meanwhile."""
    archive: Archive | None = None

    async def attempt() -> T:
        nonlocal archive
        archive = await archives.find_archive(session_id)
        if archive is None:  # deleted meanwhile
            raise NotFound("session", session_id)
        return await read(archive)

    try:
        return await call_with_retries(attempt, on=(ArchiveReplaced,), seconds=_RETRY_SECONDS, wait_max=0.5)
    except ArchiveReplaced as error:
        assert archive is not None
        raise archive_missing(archive) from error


def _exclusive_bound(last_seq: int | None) -> int | None:
    return None if last_seq is None else last_seq + 1


def _matches(line: ArchiveLine, page: EventPage, last_seq: int | None) -> bool:
    """Applies the same conditions as the `where` clause of the query `events_ascending`."""
    if line["ref_seq"] is not None or (page.types and line["type"] not in page.types):
        return False
    if not threads.is_visible(line["type"], line["body"], page.thread_id, with_extensions=page.with_extensions):
        return False
    bounds = (page.created_gt, page.created_gte, page.created_lt, page.created_lte)
    if bounds == (None, None, None, None):
        return True
    text = _processing_time(line, last_seq)
    if text is None:
        return False
    processed_at = _parse_time(text)
    return (
        (page.created_gt is None or processed_at > page.created_gt)
        and (page.created_gte is None or processed_at >= page.created_gte)
        and (page.created_lt is None or processed_at < page.created_lt)
        and (page.created_lte is None or processed_at <= page.created_lte)
    )


def _processing_time(line: ArchiveLine, last_seq: int | None) -> str | None:
    processed_at: str | None = line["taken_at"] or line["processed_at"]
    if last_seq is not None and (line.get("taken_seq") or 0) > last_seq:
        processed_at = line["processed_at"]
    return processed_at


def _position(line: ArchiveLine, processed_at: str | None) -> Position:
    return Position(
        seq=line["seq"],
        event=Event(line["type"], line["body"] or {}, line["event_id"]),
        created_at=_parse_time(line["created_at"]),
        processed_at=None if processed_at is None else _parse_time(processed_at),
        turn_id=line["turn_id"],
    )


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
