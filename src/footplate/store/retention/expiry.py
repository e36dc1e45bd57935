"""Deletes sessions that have been inactive for a configured time.

A session is not deleted while it has an unfinished turn, a queued message, a pending approval or an existing fork.
Expired sessions are deleted in the same way as sessions that a client deletes.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import structlog

from footplate.store.database import SQL, Database
from footplate.store.retention.session_deletion import delete_session_rows
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_SESSIONS_PER_RUN: Final = 2000


class SessionExpiry:
    def __init__(self, database: Database, older_than: timedelta | None) -> None:
        """`older_than`: how long a session must be inactive before it is deleted; None disables expiry."""
        self._database = database
        self._older_than = older_than

    async def run(self) -> None:
        """Checks the next batch of sessions and deletes the expired ones. Later runs continue after this batch."""
        if self._older_than is None:
            return
        progress = await self._database.fetchrow("expiry_place")
        heads = await self._next_session_ids(progress["place"] if progress else "")
        await self._database.fetch("expiry_walked", heads[-1] if len(heads) == _SESSIONS_PER_RUN else "")
        for row in await self._database.fetch("expired", heads, self._older_than):
            await self._delete_if_expired(row["organisation"], row["session_id"])

    async def list_expired(self) -> AsyncIterator[Row]:
        """Yields all sessions that are expired now."""
        heads = await self._next_session_ids("") if self._older_than is not None else []
        while heads:
            for row in await self._database.fetch("expired", heads, self._older_than):
                yield row
            heads = await self._next_session_ids(heads[-1])

    async def _next_session_ids(self, after: str) -> list[str]:
        return [row["session_id"] for row in await self._database.fetch("heads_after", after, _SESSIONS_PER_RUN)]

    async def _delete_if_expired(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_head_only"], session_id)
            if not await connection.fetch(SQL["expired"], [session_id], self._older_than):
                return
            await delete_session_rows(connection, organisation, session_id)
        log.info("expired session deleted", action="expiry.deleted", session=session_id)
