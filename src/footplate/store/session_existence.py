"""Looks up which sessions exist, were deleted or have expired, so that hosts can remove the files of deleted and
expired sessions.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from footplate.domain.files.snapshots import ExpiredSessionFiles
from footplate.store.database import SQL, Database
from footplate.store.log.files.file_snapshots import load_files_at, tree_ids


class SessionRegistry:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def cell(self) -> str:
        """Returns the name of this cell (deployment). It is unique, unless a database is a copy of another."""
        (row,) = await self._database.fetch("cell")
        return str(row["id"])

    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        return {row["id"] for row in await self._database.fetch("existing_sessions", list(session_ids))}

    async def deleted(self) -> Sequence[tuple[str, str]]:
        return [(row["organisation"], row["session_id"]) for row in await self._database.fetch("deleted_sessions")]

    async def expired(self, session_ids: Sequence[str], older_than: timedelta) -> Collection[str]:
        return {row["session_id"] for row in await self._database.fetch("expired", list(session_ids), older_than, True)}

    @asynccontextmanager
    async def resting(self, session_id: str, older_than: timedelta) -> AsyncIterator[ExpiredSessionFiles | None]:
        """Yields the files of an expired session and blocks new turns meanwhile; yields None if it has not expired."""
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_head_only"], session_id)
            row = await connection.fetchrow(SQL["expired"], [session_id], older_than, True)
            if row is None:
                yield None
                return
            trees = tree_ids(row["project_ids"])
            files = await load_files_at(connection, session_id, trees)
            yield ExpiredSessionFiles({tree: files.snapshots.get(tree) for tree in trees})
