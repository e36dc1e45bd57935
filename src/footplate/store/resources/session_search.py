"""Fills the search index of sessions from the feed, and builds the condition of a search.

The sweep indexes the sessions that have changed, some seconds after the commit. A turn therefore writes nothing for it.
Everything can be repeated: the progress is stored after the rows, and rows that exist are not written again. The rows
of a deleted session are deleted with it. Those of an archived session are deleted with its archiving, and once more
when the feed reports it, because the sweep may have indexed the session meanwhile.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

import asyncpg
import structlog

from footplate.domain.errors import Permanent
from footplate.domain.json import JsonObject
from footplate.domain.text.search_tokens import SearchTerm, event_tokens, split_into_tokens
from footplate.store.archive.format import ArchiveLine
from footplate.store.archive.reader import ArchiveReader, ArchiveReplaced
from footplate.store.database import Database
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_RUN_SECONDS: Final = 3.0
"""A sweep starts no further batch after this time; the next sweep continues."""
_CHANGES_PER_BATCH: Final = 500
_SESSIONS_PER_WALK: Final = 200
_EVENTS_PER_DOCUMENT: Final = 200
_SEARCHED_TYPES: Final = ("user.message", "agent.message", "agent.tool_use")
_MAX_DOCUMENT_BYTES: Final = 400_000
"""A row with more is finished, and a new one begins. PostgreSQL mixes up the words of a row that has more than
1 MiB. One message has at most about 200 kB.
"""
_CONTAINS: Final = "s.id in (select x.session_id from search_documents x where x.document @@ {}::text::tsquery)"


class SearchIndexing:
    """Indexes what has changed. Runs in the sweep, after the changes have their positions in the feed."""

    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects
        self._archives = ArchiveReader(database, objects)

    async def run(self) -> None:
        until = time.monotonic() + _RUN_SECONDS
        for row in await self._database.fetch("search_backlog"):
            await self._index_changes(row["organisation"], row["position"], row["head"], row["first"], until)
        while time.monotonic() < until and await self._walk():
            pass

    async def _index_changes(
        self, organisation: str, position: int, head: int, first: int | None, until: float
    ) -> None:
        if first is None or first > position + 1:  # the feed no longer has all changes
            await self._database.fetch("record_search_walk", "")
            await self._database.fetch("record_search_progress", organisation, head)
            return
        while position < head and time.monotonic() < until:
            changes = await self._database.fetchrow("search_changes", organisation, position, _CHANGES_PER_BATCH)
            if changes is None or changes["position"] is None:
                return
            for session_id in changes["session_ids"]:
                await self.index_session(session_id)
            position = changes["position"]
            await self._database.fetch("record_search_progress", organisation, position)

    async def _walk(self) -> bool:
        """Indexes the next sessions of the walk. Returns False after the last one."""
        rows = await self._database.fetch("search_walk", _SESSIONS_PER_WALK)
        for row in rows:
            await self.index_session(row["id"])
        if rows:
            await self._database.fetch("record_search_walk", rows[-1]["id"])
        return len(rows) == _SESSIONS_PER_WALK

    async def index_session(self, session_id: str) -> None:
        session = await self._database.fetchrow("searchable_session", session_id)
        if session is None:
            return
        if session["is_archived"]:
            await self._database.fetch("delete_search_documents", session_id)
            return
        mark = _mark(session["organisation"])
        try:
            await self._write(
                session_id, 0, mark, [*split_into_tokens(session["title"] or ""), *split_into_tokens(session_id)]
            )
            await self._index_events(session_id, mark, session["indexed_seq"], session["archived_seq"])
        except asyncpg.ForeignKeyViolationError:  # deleted meanwhile
            return

    async def _index_events(self, session_id: str, mark: str, after: int, archived: int) -> None:
        tokens: set[str] = set()
        size = count = 0
        async for event in self._read_events(session_id, after, archived):
            added = {*event_tokens(event["type"], await self._load_body(event))} - tokens
            tokens |= added
            size += sum(len(mark) + len(token.encode()) for token in added)
            count += 1
            after = event["seq"]
            if count == _EVENTS_PER_DOCUMENT or size > _MAX_DOCUMENT_BYTES:
                await self._write(session_id, after, mark, tokens)
                tokens, size, count = set(), 0, 0
        if count:
            await self._write(session_id, after, mark, tokens)

    async def _read_events(self, session_id: str, after: int, archived: int) -> AsyncIterator[Row | ArchiveLine]:
        """Yields the events after a position. Those up to `archived` may be in the object store."""
        if archived > after:
            async for line in self._read_archived_events(session_id, after):
                after = line["seq"]
                if line["ref_seq"] is None and line["type"] in _SEARCHED_TYPES:
                    yield line
        while rows := await self._database.fetch(
            "searchable_events", session_id, after, _EVENTS_PER_DOCUMENT, [*_SEARCHED_TYPES]
        ):
            for row in rows:
                yield row
            after = rows[-1]["seq"]

    async def _read_archived_events(self, session_id: str, after: int) -> AsyncIterator[ArchiveLine]:
        tried = ""
        while (archive := await self._archives.find_archive(session_id)) is not None and archive.object_key != tried:
            tried = archive.object_key
            try:
                async for line in self._archives.read_lines(archive, "events", after=after):
                    yield line
                    after = line["seq"]
            except ArchiveReplaced:
                continue
            except Permanent as error:  # damaged
                _log_missing(session_id, error)
            return

    async def _load_body(self, event: Row | ArchiveLine) -> JsonObject:
        """Loads the body of an event. If its object is missing, the beginning that the log has must suffice, so that
        other events and sessions are indexed.
        """
        if event["object_key"]:
            try:
                return await self._objects.load_body(event["object_key"])
            except FileNotFoundError as error:
                _log_missing(event["object_key"], error)
        return event["body"] or {}

    async def _write(self, session_id: str, seq: int, mark: str, tokens: Iterable[str]) -> None:
        lexemes = sorted({f"{mark}{token}" for token in tokens})
        await self._database.fetch("insert_search_document", session_id, seq, lexemes)


def _log_missing(name: str, error: Exception) -> None:
    log.warning("messages could not be indexed", action="search.missing", object=name, reason=str(error))


def build_search_filter(organisation: str, terms: Sequence[SearchTerm]) -> dict[str, tuple[str, ...]]:
    """Returns the filter of `build_page_query` for sessions that contain all terms. Without a term, none does."""
    if not terms:
        return {"false": ()}
    mark = _mark(organisation)
    queries = [" & ".join(f"'{mark}{token}'{'' if term.is_exact else ':*'}" for token in term.tokens) for term in terms]
    return {" and ".join([_CONTAINS] * len(queries)): tuple(queries)}


def _mark(organisation: str) -> str:
    """Returns what each word of an organisation begins with, so that a search does not read the words of others."""
    return hashlib.blake2b(organisation.encode(), digest_size=4).hexdigest()
