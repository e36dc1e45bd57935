"""Archives sessions that have been inactive for a configured time: moves their rows to the object store.

The archive is written first and read back. A transaction then locks the session's head row, checks that the session has
not changed, and records the archive. After that, reads use the archive, and the rows are deleted in batches. If the
process is killed, the next run removes an unrecorded archive or continues the deletion.
"""

import asyncio
import time
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.errors import Permanent
from footplate.store.archive.reader import Archive, ArchiveReader, ArchiveReplaced
from footplate.store.archive.writer import ArchiveExtent, ArchiveWriter, RowsMissing, archive_folder
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_SESSIONS_PER_BATCH: Final = 2000
"""Number of sessions that one batch checks."""
_SWEEP_SECONDS: Final = 5.0
"""A sweep starts no further batch after this time; the next sweep continues."""
_CONCURRENT_ARCHIVES: Final = 4
"""Number of archives written at the same time. Each needs a connection."""
_PRUNE_ROWS: Final = 1000
_MAX_UNFINISHED: Final = 100


class SessionArchiving:
    def __init__(
        self, database: Database, objects: Objects, older_than: timedelta | None, *, batch: int = _PRUNE_ROWS
    ) -> None:
        """`older_than`: how long a session must be inactive before it is archived; None disables archiving."""
        self._database = database
        self._objects = objects
        self._archives = ArchiveReader(database, objects)
        self._writer = ArchiveWriter(self._archives, objects)
        self._older_than = older_than
        self._batch = batch

    async def run(self) -> None:
        """Runs one sweep: finishes the pruning of earlier sweeps, then archives the next sessions."""
        for row in await self._database.fetch("to_prune", _MAX_UNFINISHED):
            await self._prune(row["session_id"])
        if self._older_than is None:
            return
        until = time.monotonic() + _SWEEP_SECONDS
        while await self._archive_next_batch() and time.monotonic() < until:
            pass

    async def _archive_next_batch(self) -> bool:
        """Archives the due sessions of the next batch. Returns False after the last batch."""
        progress = await self._database.fetchrow("walk_place")
        rows = await self._database.fetch(
            "walk", progress["place"] if progress else "", self._older_than, _SESSIONS_PER_BATCH
        )
        # Progress is stored first, so that a session that cannot be archived does not block the ones after it.
        await self._database.fetch("walked", rows[-1]["session_id"] if len(rows) == _SESSIONS_PER_BATCH else "")
        candidates = (row for row in rows if row["candidate"])

        async def archive_candidates() -> None:
            for row in candidates:  # the tasks share this iterator
                await self.archive_if_inactive(row["organisation"], row["session_id"])

        async with asyncio.TaskGroup() as group:
            for _ in range(_CONCURRENT_ARCHIVES):
                group.create_task(archive_candidates())
        return len(rows) == _SESSIONS_PER_BATCH

    async def archive_if_inactive(self, organisation: str, session_id: str) -> None:
        """Archives the session if it is inactive. On failure, logs the reason and changes nothing."""
        try:
            await self._archive(organisation, session_id)
        except (RowsMissing, ArchiveReplaced, Permanent) as error:
            log.warning(
                "session could not be archived", action="retention.failed", session=session_id, reason=repr(error)
            )

    async def _archive(self, organisation: str, session_id: str) -> None:
        """Archives one session. The transaction takes a lock before the object is written, so that two workers do not
        archive the same session. A worker that loses its connection loses the lock and cannot record the archive.
        """
        assert self._older_than is not None
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            resting = await connection.fetchrow(SQL["resting"], session_id, self._older_than)
            if resting is None:
                return
            old = await self._archives.find_archive(session_id, connection)
            await self._objects.delete_folder(
                archive_folder(organisation, session_id), except_keys=[old.object_key] if old else []
            )
            extent = ArchiveExtent(
                organisation,
                session_id,
                resting["seq"],
                resting["entries"],
                resting["inherited_seq"],
                resting["inherited_entries"],
            )
            archive = await self._writer.write_archive(connection, extent, old)
            await failpoints.hit("archive_written")
            if not await self._is_unchanged(connection, resting, session_id):
                await self._objects.delete_object(archive.object_key)
                return
            await _record_archive(connection, archive)
        # If the acknowledgement of this commit is lost, the archive may be recorded, so the object is not deleted.
        log.info(
            "session archived",
            action="retention.archived",
            session=session_id,
            bytes=archive.size,
            seq=archive.last_seq,
        )
        await failpoints.hit("archive_recorded")
        await self._prune(session_id)

    async def _is_unchanged(self, connection: Connection, before: Row, session_id: str) -> bool:
        await connection.execute(SQL["lock_head_only"], session_id)
        current = await connection.fetchrow(SQL["resting"], session_id, self._older_than)
        return current is not None and (current["seq"], current["epoch"]) == (before["seq"], before["epoch"])

    async def _prune(self, session_id: str) -> None:
        while await self._prune_batch(session_id):
            await failpoints.hit("archive_pruning")

    async def _prune_batch(self, session_id: str) -> bool:
        """Deletes one batch of archived rows or, after the last batch, the replaced object. True means continue."""
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return False
            if await connection.fetchval(SQL["prune"], session_id, self._batch):
                return True
            archive = await self._archives.find_archive(session_id, connection)
            if archive is not None and archive.replaced is not None:
                await self._objects.delete_object(archive.replaced)
                await failpoints.hit("archive_replaced")
            await connection.execute(SQL["pruned"], session_id)
            return False


async def _record_archive(connection: Connection, archive: Archive) -> None:
    await connection.execute(
        *bind(
            "record_archive",
            session_id=archive.session_id,
            organisation=archive.organisation,
            object_key=archive.object_key,
            last_seq=archive.last_seq,
            entries=archive.entries,
            index_at=archive.index_at,
            size=archive.size,
            sha256=archive.sha256,
        )
    )
