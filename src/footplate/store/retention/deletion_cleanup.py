"""Removes the data that a deleted session still has outside of the database, such as objects.

The transaction that deletes the rows of a session also writes a deletion record. The cleanup runs soon after that, and
again an hour after the deletion, because a worker that lost the session may still have written data. A failed run is
retried. The record is removed when the later run has succeeded. Rows and objects that existing forks need are kept.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.files.pack_names import snapshot_number
from footplate.domain.files.snapshots import packs_prefix
from footplate.store.archive.format import ArchiveLine, BlockKind
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database
from footplate.store.object_store import Objects

log = structlog.get_logger(__name__)

RemoveSessionData = Callable[[str, str], Awaitable[None]]
"""Removes a session's data in other components. Called with organisation and session id, possibly twice."""

_SECOND_PASS_AFTER: Final = timedelta(hours=1)
_BATCH_SIZE: Final = 100
_PAGE_LINES: Final = 500


class DeletionCleanup:
    def __init__(
        self,
        database: Database,
        objects: Objects,
        remove_session_data: RemoveSessionData,
        *,
        second_pass_after: timedelta = _SECOND_PASS_AFTER,
    ) -> None:
        self._database = database
        self._objects = objects
        self._archives = ArchiveReader(database, objects)
        self._remove_session_data = remove_session_data
        self._second_pass_after = second_pass_after

    async def run(self) -> None:
        for row in await self._database.fetch("deletions_due", self._second_pass_after, _BATCH_SIZE):
            try:
                await self._finish(row["organisation"], row["session_id"])
            except Exception:
                # Any failure: the next sweep retries, and the other deletions must not wait.
                log.warning(
                    "deletion of a session could not be finished; will retry",
                    action="deletion.late",
                    session=row["session_id"],
                    exc_info=True,
                )

    async def _finish(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            # Skipped while the session's archive is being written. Its writer will find that the session is deleted.
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            await self._restore_rows_for_forks(connection, session_id)
        await failpoints.hit("deletion_restored")
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            folder = f"{organisation}/{session_id}"
            needed = await find_object_keys(connection, folder, session_id) | await self._find_needed_packs(
                connection, folder, session_id
            )
            await self._objects.delete_folder(folder, except_keys=needed)
            await failpoints.hit("deletion_objects")
            await self._remove_session_data(organisation, session_id)
            await connection.execute(SQL["purged"], session_id, self._second_pass_after)
        log.info("deletion finished", action="deletion.finished", session=session_id)

    async def _restore_rows_for_forks(self, connection: Connection, session_id: str) -> None:
        """Writes the parts of the archive that forks need back to rows, and removes the archive's record in the same
        transaction. After a crash, either the archive or the rows exist.
        """
        archive = await self._archives.find_archive(session_id, connection)
        if archive is None:
            return
        await connection.fetch(SQL["lock_owners"], session_id)
        pins = await connection.fetchrow(SQL["pins"], session_id)
        assert pins is not None
        needed: tuple[tuple[BlockKind, int], ...] = (("events", pins["seq"] + 1), ("entries", pins["entries"]))
        for kind, last in needed:
            lines = self._archives.read_lines(archive, kind, before=last)
            while page := [line async for line in _next_lines(lines)]:
                await connection.execute(SQL[f"restore_{kind}"], session_id, archive.organisation, page)
        await connection.execute(SQL["forget_archive"], session_id)
        log.info("archive restored to the database", action="deletion.restored", session=session_id)

    async def _find_needed_packs(self, connection: Connection, folder: str, session_id: str) -> set[str]:
        """Returns the keys of the deleted session's packs that the files of its forks are built from."""
        keys: set[str] = set()
        for row in await connection.fetch(SQL["pinned_packs"], session_id):
            prefix = packs_prefix(folder, row["tree"])
            for name in await self._objects.list_names(prefix):
                if (number := snapshot_number(name)) is not None and number <= row["number"]:
                    keys.add(f"{prefix}/{name}")
        return keys


async def _next_lines(lines: AsyncIterator[ArchiveLine]) -> AsyncIterator[ArchiveLine]:
    for _ in range(_PAGE_LINES):
        try:
            yield await anext(lines)
        except StopAsyncIteration:
            return


async def find_object_keys(connection: Connection, folder: str, session_id: str) -> set[str]:
    """Returns the keys of objects that a session's rows name. Rows of a deleted session exist only for its forks."""
    keys: set[str] = set()
    name = re.compile(f'"({re.escape(folder)}/[^"]+)"')
    for row in await connection.fetch(SQL["pinned_objects"], session_id, f'"{folder}/'):
        keys.update(name.findall(row["body"] or ""))
        if row["object_key"]:
            keys.add(row["object_key"])
    return keys
