"""Finishes deletions: what a deleted session leaves outside the database is removed, whoever was killed meanwhile.

The transaction that deletes a session's rows notes its id. Whatever comes after, objects first, may fail or be cut off;
the note stays until all of it was done twice, the second time when no worker that was cut off can still be writing.

Living forks keep the rows that they need, and the objects that those rows name. An archive holds more than that: what
forks need of it becomes rows again before it goes. Killed in between, the archive is still there or the rows are.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.packs import number_of
from footplate.domain.snapshots import prefix_of
from footplate.store.archives import Archives
from footplate.store.archives_format import Kind, Line
from footplate.store.database import SQL, Connection, Database
from footplate.store.objects import Objects

log = structlog.get_logger(__name__)

Forget = Callable[[str, str], Awaitable[None]]
"""Removes what the rest of the product keeps of a session; takes its organisation and id, and may be called twice."""

_LATE: Final = timedelta(hours=1)
_AT_ONCE: Final = 100
_PAGE: Final = 500


class Deletions:
    def __init__(self, database: Database, objects: Objects, forget: Forget, *, late: timedelta = _LATE) -> None:
        self._database = database
        self._objects = objects
        self._archives = Archives(database, objects)
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
            await self._restore(connection, session_id)
        await failpoints.hit("deletion_restored")
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            folder = f"{organisation}/{session_id}"
            needed = await named_by_rows(connection, folder, session_id) | await self._packs(
                connection, folder, session_id
            )
            await self._objects.delete_under(folder, but=needed)
            await failpoints.hit("deletion_objects")
            await self._forget(organisation, session_id)
            await connection.execute(SQL["purged"], session_id, self._late)
        log.info("deletion finished", action="deletion.finished", session=session_id)

    async def _restore(self, connection: Connection, session_id: str) -> None:
        """What forks need of the archive goes back into rows."""
        archive = await self._archives.find(session_id, connection)
        if archive is None:
            return
        await connection.fetch(SQL["lock_owners"], session_id)
        pins = await connection.fetchrow(SQL["pins"], session_id)
        assert pins is not None
        needed: tuple[tuple[Kind, int], ...] = (("events", pins["seq"] + 1), ("entries", pins["entries"]))
        for kind, last in needed:
            lines = self._archives.lines(archive, kind, before=last)
            while page := [line async for line in _some(lines)]:
                await connection.execute(SQL[f"restore_{kind}"], session_id, archive.organisation, page)
        await connection.execute(SQL["forget_archive"], session_id)
        log.info("archive given up", action="deletion.restored", session=session_id)

    async def _packs(self, connection: Connection, folder: str, session_id: str) -> set[str]:
        """Those of a deleted session that lead to the files of its forks."""
        keys: set[str] = set()
        for row in await connection.fetch(SQL["pinned_packs"], session_id):
            prefix = prefix_of(folder, row["tree"])
            for name in await self._objects.names(prefix):
                if (number := number_of(name)) is not None and number <= row["number"]:
                    keys.add(f"{prefix}/{name}")
        return keys


async def _some(lines: AsyncIterator[Line]) -> AsyncIterator[Line]:
    for _ in range(_PAGE):
        try:
            yield await anext(lines)
        except StopAsyncIteration:
            return


async def named_by_rows(connection: Connection, folder: str, session_id: str) -> set[str]:
    """The objects that rows of a session name; of a deleted one those are there for its forks."""
    keys: set[str] = set()
    name = re.compile(f'"({re.escape(folder)}/[^"]+)"')
    for row in await connection.fetch(SQL["pinned_objects"], session_id, f'"{folder}/'):
        keys.update(name.findall(row["body"] or ""))
        if row["object_key"]:
            keys.add(row["object_key"])
    return keys
