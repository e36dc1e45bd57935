"""Which sessions there are, for who keeps something of them outside the database."""

from collections.abc import Collection, Sequence

from footplate.store.database import Database


class SessionLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def cell(self) -> str:
        """The name of this cell: no other database has it, unless it is a copy of this one."""
        (row,) = await self._database.fetch("cell")
        return str(row["id"])

    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        return {row["id"] for row in await self._database.fetch("existing_sessions", list(session_ids))}

    async def deleted(self) -> Sequence[tuple[str, str]]:
        return [(row["organisation"], row["session_id"]) for row in await self._database.fetch("deleted_sessions")]
