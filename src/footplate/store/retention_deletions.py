"""Finishes deletions: removes the data that a deleted session has outside of the database, even after crashes.

The transaction that deletes a session's rows also writes a deletion record. The later steps, starting with the objects,
may fail or be interrupted. The record stays until all steps were done twice, the second time when a worker that lost
the session can no longer be writing.

Existing forks retain the rows that they need, and the objects that those rows name. The parts of an archive that forks
need are written back to rows before the archive is deleted. After a crash, either the archive or the rows exist.
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
"""Removes a session's data in other components. Called with organisation and session id, possibly twice."""

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
                # Any failure: the next sweep retries, and the other deletions must not wait.
                log.warning("deletion not finished", action="deletion.late", session=row["session_id"], exc_info=True)

    async def _finish(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            # Skipped while the session's archive is being written. Its writer will find that the session is deleted.
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
        """Writes the parts of the archive that forks need back to rows, and removes the archive's record."""
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
        log.info("archive restored to rows", action="deletion.restored", session=session_id)

    async def _packs(self, connection: Connection, folder: str, session_id: str) -> set[str]:
        """Returns the keys of the deleted session's packs that the files of its forks are built from."""
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
    """Returns the keys of objects that a session's rows name. Rows of a deleted session exist only for its forks."""
    keys: set[str] = set()
    name = re.compile(f'"({re.escape(folder)}/[^"]+)"')
    for row in await connection.fetch(SQL["pinned_objects"], session_id, f'"{folder}/'):
        keys.update(name.findall(row["body"] or ""))
        if row["object_key"]:
            keys.add(row["object_key"])
    return keys
