"""Finishes deletions: what a deleted session leaves outside the database is removed, whoever was killed meanwhile.

The transaction that deletes a session's rows notes its id. Whatever comes after, objects first, may fail or be cut off;
the note stays until all of it was done twice, the second time when no worker that was cut off can still be writing.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.store.database import SQL, Database
from footplate.store.objects import Objects

log = structlog.get_logger(__name__)

Forget = Callable[[str, str], Awaitable[None]]
"""Removes what the rest of the product keeps of a session; takes its organisation and id, and may be called twice."""

_LATE: Final = timedelta(hours=1)
_AT_ONCE: Final = 100


class Deletions:
    def __init__(self, database: Database, objects: Objects, forget: Forget, *, late: timedelta = _LATE) -> None:
        self._database = database
        self._objects = objects
        self._forget = forget
        self._late = late

    async def run(self) -> None:
        for row in await self._database.fetch("deletions_due", self._late, _AT_ONCE):
            try:
                await self._finish(row["organisation"], row["session_id"])
            except Exception:
                # Whatever it is, it is tried again by the next sweep and must not hold up the others.
                log.warning("not deleted yet", action="deletion.late", session=row["session_id"], exc_info=True)

    async def _finish(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            # Not while somebody writes the session's archive; it will find that the session is gone.
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            await self._objects.delete_session(organisation, session_id)
            await failpoints.hit("deletion_objects")
            await self._forget(organisation, session_id)
            await connection.execute(SQL["purged"], session_id, self._late)
        log.info("deletion finished", action="deletion.finished", session=session_id)
