"""Reads the history of a fork: its positions, entries and bodies, across the rows of the sessions it descends from.

A fork copies nothing, so it costs the same whatever its parent's size. Positions and entries are numbered continuously
over the whole history. A segment is the rows of one session (its owner) up to a position; the next segment continues
from there, and the fork's own rows come last. An owner's own rows start where its own segments end, so a segment needs
no lower bound.

An owner may have been archived before it was forked, and the archive of a deleted owner is turned into rows again
(`store/retention/deletion_cleanup.py`). A reader that finds an archive missing therefore reads the rows once more.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from footplate.domain.errors import NotFound, Permanent
from footplate.domain.events import Position
from footplate.domain.json import JsonObject
from footplate.domain.services import EventPage
from footplate.store import records
from footplate.store.archives import Archive, Archives
from footplate.store.archives_format import Line
from footplate.store.archives_reads import ArchivedReads, through
from footplate.store.database import SQL, Connection, Database

Row = records.Row | Line
T = TypeVar("T")

_PAGE: Final = 32


@dataclass(frozen=True, slots=True)
class Stretch:
    owner: str
    last_seq: int | None = None
    """The last position of the segment; None for all."""
    entries: int | None = None
    """The segment has the entries below this index; None for all."""


class Lineages:
    """Reads histories that may span several sessions."""

    def __init__(self, database: Database, archives: Archives) -> None:
        self._database = database
        self._archives = archives
        self._archived = ArchivedReads(database, archives)

    async def of(self, session_id: str) -> list[Stretch]:
        """Returns the segments of the session's history, oldest first, including its own rows."""
        rows = await self._database.fetch("stretches", session_id)
        return [*map(stretch, rows), Stretch(session_id)]

    async def page(self, organisation: str, session_id: str, page: EventPage) -> list[Position]:
        found: list[Position] = []
        stretches = await self.of(session_id)
        for segment in stretches if page.order == "asc" else reversed(stretches):
            if page.order == "asc" and segment.last_seq is not None and segment.last_seq <= (page.after_seq or 0):
                continue
            rest = replace(page, limit=page.limit - len(found))
            found += await self._page_of(organisation, segment, rest)
            if len(found) == page.limit:
                break
        return found

    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> list[Position]:
        found: list[Position] = []
        for segment in await self.of(session_id):
            after = found[-1].seq if found else after_seq
            if len(found) < limit and (segment.last_seq is None or segment.last_seq > after):
                found += await self._positions_of(organisation, segment, after, limit - len(found))
        return found

    async def entries(self, session_id: str, after: int, before: int | None = None) -> list[Row]:
        """Returns the conversation's entries from index `after` (inclusive) to `before` (exclusive)."""
        found: list[Row] = []
        for segment in await self.of(session_id):
            if segment.entries is None or segment.entries > after + len(found):
                found += await self._entries_of(_up_to(segment, before), after + len(found))
        return found

    async def body(self, session_id: str, seq: int) -> tuple[JsonObject, str | None]:
        """Returns the body of the event at a position, and its object key if the object store has the complete body."""
        segments = await self.of(session_id)
        owner = next(segment.owner for segment in segments if segment.last_seq is None or segment.last_seq >= seq)

        async def rows() -> list[Row]:
            return [*await self._database.fetch("body_at", owner, seq)]

        async def read(archive: Archive) -> list[Row]:
            lines = self._archives.lines(archive, "events", after=seq - 1, before=seq + 1)
            return [line async for line in lines] or await rows()

        async def archived() -> list[Row]:
            return await through(self._archives, owner, read)

        for row in await self._either(owner, rows, archived):
            return row["body"], row["object_key"]
        raise Permanent(f"Position {seq} of session {session_id!r} is not in its log.")

    async def page_rows(
        self, organisation: str, owner: str, page: EventPage, last_seq: int | None = None
    ) -> list[records.Row]:
        return await self._database.fetch(
            "events_ascending" if page.order == "asc" else "events_descending",
            owner,
            organisation,
            page.after_seq,
            page.limit,
            list(page.types) or None,
            page.created_gt,
            page.created_gte,
            page.created_lt,
            page.created_lte,
            last_seq,
            page.thread_id,
        )

    async def _page_of(self, organisation: str, part: Stretch, page: EventPage) -> Sequence[Position]:
        async def rows() -> list[Position]:
            return [*map(records.position, await self.page_rows(organisation, part.owner, page, part.last_seq))]

        async def archived() -> list[Position]:
            return await self.archived_page(organisation, part, page)

        return await self._either(part.owner, rows, archived)

    async def archived_page(self, organisation: str, part: Stretch, page: EventPage) -> list[Position]:
        """Reads a page of events of an owner that has an archive."""

        async def later(after_seq: int, limit: int) -> Sequence[records.Row]:
            rest = replace(page, after_seq=after_seq, limit=limit)
            return await self.page_rows(organisation, part.owner, rest, part.last_seq)

        if page.order == "asc":
            return await self._archived.ascending(part.owner, page, later, last_seq=part.last_seq)
        rows = await self.page_rows(organisation, part.owner, page, part.last_seq)
        return await self._archived.descending(part.owner, page, rows, last_seq=part.last_seq)

    async def _positions_of(self, organisation: str, part: Stretch, after: int, limit: int) -> Sequence[Position]:
        async def rows() -> list[Position]:
            found = await self._database.fetch("positions", part.owner, organisation, after, limit, part.last_seq)
            return [*map(records.position, found)]

        async def archived() -> list[Position]:
            return await self._archived.positions(organisation, part.owner, after, limit, last_seq=part.last_seq)

        return await self._either(part.owner, rows, archived)

    async def _entries_of(self, part: Stretch, after: int) -> Sequence[Row]:
        async def rows() -> list[Row]:
            return [*await self._database.fetch("entries", part.owner, after, part.entries)]

        async def read(archive: Archive) -> list[Row]:
            lines = self._archives.lines(archive, "entries", after=after - 1, before=part.entries)
            old: list[Row] = [line async for line in lines]
            later = max(after, archive.entries)
            return [*old, *await self._database.fetch("entries", part.owner, later, part.entries)]

        async def archived() -> list[Row]:
            return await through(self._archives, part.owner, read)

        return await self._either(part.owner, rows, archived)

    async def _either(
        self, owner: str, rows: Callable[[], Awaitable[Sequence[T]]], archived: Callable[[], Awaitable[Sequence[T]]]
    ) -> Sequence[T]:
        """Reads from rows if the owner had no archive before and after the read, and from its archive otherwise."""
        if await self._archives.find(owner) is None:
            found = await rows()
            if await self._archives.find(owner) is None:
                return found
        try:
            return await archived()
        except NotFound:
            return await rows()


def _up_to(part: Stretch, before: int | None) -> Stretch:
    if before is None or (part.entries is not None and part.entries <= before):
        return part
    return replace(part, entries=before)


def stretch(row: records.Row) -> Stretch:
    return Stretch(row["owner"], row["last_seq"], row["entries"])


async def backwards(connection: Connection, archives: Archives, owner: str, seq: int) -> AsyncIterator[Row]:
    """Yields an owner's own positions from `seq` downwards, from its archive where there are no rows."""
    while rows := await connection.fetch(SQL["back"], owner, seq, _PAGE):
        if rows[0]["seq"] != seq:
            break
        for row in rows:
            yield row
        seq = rows[-1]["seq"] - 1
    archive = await archives.find(owner, connection)
    if archive is not None and seq <= archive.last_seq:
        async for line in archives.lines(archive, "events", before=seq + 1, descending=True):
            yield line
