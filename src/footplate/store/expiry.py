"""Sessions that nobody has touched for long: which those are, and their deletion, where the operator wants it.

Such a session waits for nothing: no turn of it runs, is parked or due, no step is queued, nobody is asked anything, and
no living fork begins in it. It is deleted as on request, and what it leaves elsewhere goes by the same note.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import structlog

from footplate.store.database import SQL, Database
from footplate.store.deleting import delete_session
from footplate.store.records import Row

log = structlog.get_logger(__name__)

_HEADS: Final = 2000


class Expiry:
    def __init__(self, database: Database, older_than: timedelta | None) -> None:
        """`older_than`: how long a session is left alone before it is deleted; None: none ever is."""
        self._database = database
        self._older_than = older_than

    async def run(self) -> None:
        """The next sessions in turn, as retention walks."""
        if self._older_than is None:
            return
        place = await self._database.fetchrow("expiry_place")
        heads = await self._heads(place["place"] if place else "")
        await self._database.fetch("expiry_walked", heads[-1] if len(heads) == _HEADS else "")
        for row in await self._database.fetch("expired", heads, self._older_than):
            await self._delete(row["organisation"], row["session_id"])

    async def due(self) -> AsyncIterator[Row]:
        """All that would be deleted now."""
        heads = await self._heads("") if self._older_than is not None else []
        while heads:
            for row in await self._database.fetch("expired", heads, self._older_than):
                yield row
            heads = await self._heads(heads[-1])

    async def _heads(self, after: str) -> list[str]:
        return [row["session_id"] for row in await self._database.fetch("heads_after", after, _HEADS)]

    async def _delete(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_head_only"], session_id)
            if not await connection.fetch(SQL["expired"], [session_id], self._older_than):
                return
            await delete_session(connection, organisation, session_id)
        log.info("expired, and deleted", action="expiry.deleted", session=session_id)
