"""Reads the history of a fork, which begins with rows of the sessions from which it was forked.

A fork copies no rows, so its cost does not depend on the size of its parent. Its history consists of segments: the rows
of one session (the owner) up to a position. The fork's own rows come last. Positions and entries are numbered
continuously over all segments.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from footplate.domain.errors import NotFound, Permanent
from footplate.domain.json import JsonObject
from footplate.domain.ports.api import EventPage
from footplate.domain.sessions.events import Position
from footplate.store import row_mapping
from footplate.store.archive.archived_events import ArchivedEvents, read_archive_with_retries
from footplate.store.archive.format import ArchiveLine
from footplate.store.archive.reader import Archive, ArchiveReader
from footplate.store.database import SQL, Connection, Database

RowOrLine = row_mapping.Row | ArchiveLine
T = TypeVar("T")

_PAGE_ROWS: Final = 32


@dataclass(frozen=True, slots=True)
class LogSegment:
    owner: str
    last_seq: int | None = None
    """The last position of the segment; None for all."""
    entries: int | None = None
    """The segment has the entries below this index; None for all."""


class ForkHistory:
    """Reads histories that may span several sessions.

    The own rows of an owner start where its inherited segments end, so a segment needs no lower bound. An owner may
    have been archived, and the archive of a deleted owner is written back to rows
    (`store/retention/deletion_cleanup.py`). A reader that finds an archive missing therefore reads the rows once more.
    """

    def __init__(self, database: Database, archives: ArchiveReader) -> None:
        self._database = database
        self._archives = archives
        self._archived_events = ArchivedEvents(database, archives)

    async def load_segments(self, session_id: str) -> list[LogSegment]:
        """Returns the segments of the session's history, oldest first, including its own rows."""
        rows = await self._database.fetch("stretches", session_id)
        return [*map(load_segment, rows), LogSegment(session_id)]

    async def read_page(self, organisation: str, session_id: str, page: EventPage) -> list[Position]:
        found: list[Position] = []
        stretches = await self.load_segments(session_id)
        for segment in stretches if page.order == "asc" else reversed(stretches):
            if page.order == "asc" and segment.last_seq is not None and segment.last_seq <= (page.after_seq or 0):
                continue
            rest = replace(page, limit=page.limit - len(found))
            found += await self._read_segment_page(organisation, segment, rest)
            if len(found) == page.limit:
                break
        return found

    async def read_positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> list[Position]:
        found: list[Position] = []
        for segment in await self.load_segments(session_id):
            after = found[-1].seq if found else after_seq
            if len(found) < limit and (segment.last_seq is None or segment.last_seq > after):
                found += await self._read_segment_positions(organisation, segment, after, limit - len(found))
        return found

    async def read_entries(self, session_id: str, after: int, before: int | None = None) -> list[RowOrLine]:
        """Returns the conversation's entries from index `after` (inclusive) to `before` (exclusive)."""
        found: list[RowOrLine] = []
        for segment in await self.load_segments(session_id):
            if segment.entries is None or segment.entries > after + len(found):
                found += await self._read_segment_entries(_truncate_segment(segment, before), after + len(found))
        return found

    async def read_body(self, session_id: str, seq: int) -> tuple[JsonObject, str | None]:
        """Returns the body of the event at a position, and its object key if the object store has the complete body."""
        segments = await self.load_segments(session_id)
        owner = next(segment.owner for segment in segments if segment.last_seq is None or segment.last_seq >= seq)

        async def rows() -> list[RowOrLine]:
            return [*await self._database.fetch("body_at", owner, seq)]

        async def read(archive: Archive) -> list[RowOrLine]:
            lines = self._archives.read_lines(archive, "events", after=seq - 1, before=seq + 1)
            return [line async for line in lines] or await rows()

        async def archived() -> list[RowOrLine]:
            return await read_archive_with_retries(self._archives, owner, read)

        for row in await self._read_rows_or_archive(owner, rows, archived):
            return row["body"], row["object_key"]
        raise Permanent(f"Position {seq} of session {session_id!r} is not in its log.")

    async def read_page_rows(
        self, organisation: str, owner: str, page: EventPage, last_seq: int | None = None
    ) -> list[row_mapping.Row]:
        return await self._database.fetch(
            "events_ascending" if page.order == "asc" else "events_descending",
            session_id=owner,
            organisation=organisation,
            after_seq=page.after_seq,
            limit=page.limit,
            types=list(page.types) or None,
            created_gt=page.created_gt,
            created_gte=page.created_gte,
            created_lt=page.created_lt,
            created_lte=page.created_lte,
            last_seq=last_seq,
            thread_id=page.thread_id,
            with_extensions=page.with_extensions,
        )

    async def _read_segment_page(self, organisation: str, segment: LogSegment, page: EventPage) -> Sequence[Position]:
        async def rows() -> list[Position]:
            return [
                *map(
                    row_mapping.load_position,
                    await self.read_page_rows(organisation, segment.owner, page, segment.last_seq),
                )
            ]

        async def archived() -> list[Position]:
            return await self.read_archived_page(organisation, segment, page)

        return await self._read_rows_or_archive(segment.owner, rows, archived)

    async def read_archived_page(self, organisation: str, segment: LogSegment, page: EventPage) -> list[Position]:
        """Reads a page of events of an owner that has an archive."""

        async def later(after_seq: int, limit: int) -> Sequence[row_mapping.Row]:
            rest = replace(page, after_seq=after_seq, limit=limit)
            return await self.read_page_rows(organisation, segment.owner, rest, segment.last_seq)

        if page.order == "asc":
            return await self._archived_events.page_ascending(segment.owner, page, later, last_seq=segment.last_seq)
        rows = await self.read_page_rows(organisation, segment.owner, page, segment.last_seq)
        return await self._archived_events.page_descending(segment.owner, page, rows, last_seq=segment.last_seq)

    async def _read_segment_positions(
        self, organisation: str, segment: LogSegment, after: int, limit: int
    ) -> Sequence[Position]:
        async def rows() -> list[Position]:
            found = await self._database.fetch("positions", segment.owner, organisation, after, limit, segment.last_seq)
            return [*map(row_mapping.load_position, found)]

        async def archived() -> list[Position]:
            return await self._archived_events.positions(
                organisation, segment.owner, after, limit, last_seq=segment.last_seq
            )

        return await self._read_rows_or_archive(segment.owner, rows, archived)

    async def _read_segment_entries(self, segment: LogSegment, after: int) -> Sequence[RowOrLine]:
        async def rows() -> list[RowOrLine]:
            return [*await self._database.fetch("entries", segment.owner, after, segment.entries)]

        async def read(archive: Archive) -> list[RowOrLine]:
            lines = self._archives.read_lines(archive, "entries", after=after - 1, before=segment.entries)
            old: list[RowOrLine] = [line async for line in lines]
            later = max(after, archive.entries)
            return [*old, *await self._database.fetch("entries", segment.owner, later, segment.entries)]

        async def archived() -> list[RowOrLine]:
            return await read_archive_with_retries(self._archives, segment.owner, read)

        return await self._read_rows_or_archive(segment.owner, rows, archived)

    async def _read_rows_or_archive(
        self, owner: str, rows: Callable[[], Awaitable[Sequence[T]]], archived: Callable[[], Awaitable[Sequence[T]]]
    ) -> Sequence[T]:
        """Reads from rows if the owner had no archive before and after the read, and from its archive otherwise."""
        if await self._archives.find_archive(owner) is None:
            found = await rows()
            if await self._archives.find_archive(owner) is None:
                return found
        try:
            return await archived()
        except NotFound:
            return await rows()


def _truncate_segment(segment: LogSegment, before: int | None) -> LogSegment:
    if before is None or (segment.entries is not None and segment.entries <= before):
        return segment
    return replace(segment, entries=before)


def load_segment(row: row_mapping.Row) -> LogSegment:
    return LogSegment(row["owner"], row["last_seq"], row["entries"])


async def read_backwards(
    connection: Connection, archives: ArchiveReader, owner: str, seq: int
) -> AsyncIterator[RowOrLine]:
    """Yields an owner's own positions from `seq` downwards, from its archive where there are no rows."""
    while rows := await connection.fetch(SQL["back"], owner, seq, _PAGE_ROWS):
        if rows[0]["seq"] != seq:
            break
        for row in rows:
            yield row
        seq = rows[-1]["seq"] - 1
    archive = await archives.find_archive(owner, connection)
    if archive is not None and seq <= archive.last_seq:
        async for line in archives.read_lines(archive, "events", before=seq + 1, descending=True):
            yield line
