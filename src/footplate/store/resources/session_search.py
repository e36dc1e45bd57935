"""Fills the search index of sessions from the feed, and builds the condition of a search.

The sweep indexes the sessions that have changed, some seconds after the commit. A turn therefore writes nothing for it.
Everything can be repeated: the progress is stored after the rows, and rows that exist are not written again. The rows
of a deleted session are deleted with it. Those of an archived session are deleted with its archiving, and once more
when the feed reports it, because the sweep may have indexed the session meanwhile.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Final

import asyncpg

from footplate.domain.text.search_tokens import SearchTerm, event_tokens, split_into_tokens
from footplate.store.database import Database
from footplate.store.object_store import Objects

_RUN_SECONDS: Final = 3.0
"""A sweep starts no further batch after this time; the next sweep continues."""
_CHANGES_PER_BATCH: Final = 500
_SESSIONS_PER_WALK: Final = 200
_EVENTS_PER_DOCUMENT: Final = 200
_MAX_DOCUMENT_BYTES: Final = 400_000
"""A row whose words are longer is finished, and a new one begins. PostgreSQL confuses the words of a row with more than
1 MiB. One message has at most about 200 kB.
"""
_CONTAINS: Final = "s.id in (select x.session_id from search_documents x where x.document @@ {}::text::tsquery)"


class SearchIndexing:
    """Indexes what has changed. Runs in the sweep, after the changes have their positions in the feed."""

    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

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
            after, is_complete = session["indexed_seq"], False
            while not is_complete:
                rows = await self._database.fetch("searchable_events", session_id, after, _EVENTS_PER_DOCUMENT)
                is_complete = len(rows) < _EVENTS_PER_DOCUMENT
                if not rows:
                    return
                words: set[str] = set()
                size = 0
                for row in rows:
                    body = await self._objects.load_body(row["object_key"]) if row["object_key"] else row["body"]
                    added = {*event_tokens(row["type"], body or {})} - words
                    words |= added
                    size += sum(len(mark) + len(word.encode()) for word in added)
                    after = row["seq"]
                    if row is rows[-1] or size > _MAX_DOCUMENT_BYTES:
                        await self._write(session_id, after, mark, words)
                        words, size = set(), 0
        except asyncpg.ForeignKeyViolationError:  # deleted meanwhile
            return

    async def _write(self, session_id: str, seq: int, mark: str, words: Iterable[str]) -> None:
        lexemes = sorted({f"{mark}{word}" for word in words})
        await self._database.fetch("insert_search_document", session_id, seq, lexemes)


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
