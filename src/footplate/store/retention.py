"""Retention: a session that has rested for long becomes one object, and its rows are deleted.

What makes it safe to be killed anywhere:
1. the object is written under a key of its own and read back; killed before 2, it is an object that nobody names, and
   the next try removes it;
2. one transaction, under the head's lock, sees that the session still rests where it did and records the archive. From
   its commit on, everything up to the archive's end is read from the object, rows or no rows;
3. rows are deleted in batches, then an older object that the new one took the place of; killed in between, the next
   sweep goes on from what the record says.

One lock, held by the transaction of 2 from before 1, keeps two sweeps apart: one that has lost its connection has lost
the lock and the means to record anything.
"""

import asyncio
import time
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.errors import Permanent
from footplate.store.archives import Archive, Archives, Moved
from footplate.store.archives_writing import ArchiveWriter, Extent, Incomplete, folder
from footplate.store.database import SQL, Connection, Database
from footplate.store.objects import Objects
from footplate.store.records import Row

log = structlog.get_logger(__name__)

_HEADS: Final = 2000
"""Looked at in one batch."""
_SWEEP_SECONDS: Final = 5.0
"""A sweep starts no further batch after this time; the next sweep continues."""
_CONCURRENT_ARCHIVES: Final = 4
"""Archives that are written at the same time. Each needs a connection."""
_BATCH: Final = 1000
_UNFINISHED: Final = 100


class Retention:
    def __init__(
        self, database: Database, objects: Objects, older_than: timedelta | None, *, batch: int = _BATCH
    ) -> None:
        """`older_than`: how long a session rests before it is archived; None: none is."""
        self._database = database
        self._objects = objects
        self._archives = Archives(database, objects)
        self._writer = ArchiveWriter(self._archives, objects)
        self._older_than = older_than
        self._batch = batch

    async def run(self) -> None:
        """One sweep: what an earlier one left unfinished, then the next sessions in turn."""
        for row in await self._database.fetch("to_prune", _UNFINISHED):
            await self._prune(row["session_id"])
        if self._older_than is None:
            return
        until = time.monotonic() + _SWEEP_SECONDS
        while await self._archive_next_batch() and time.monotonic() < until:
            pass

    async def _archive_next_batch(self) -> bool:
        """Archives the due sessions of the next batch. Returns False after the last batch."""
        place = await self._database.fetchrow("walk_place")
        rows = await self._database.fetch("walk", place["place"] if place else "", self._older_than, _HEADS)
        # Remembered first: a session that cannot be archived does not stop all that come after it.
        await self._database.fetch("walked", rows[-1]["session_id"] if len(rows) == _HEADS else "")
        candidates = (row for row in rows if row["candidate"])

        async def archive_candidates() -> None:
            for row in candidates:  # shared: each takes the next one
                await self.archive(row["organisation"], row["session_id"])

        async with asyncio.TaskGroup() as group:
            for _ in range(_CONCURRENT_ARCHIVES):
                group.create_task(archive_candidates())
        return len(rows) == _HEADS

    async def archive(self, organisation: str, session_id: str) -> None:
        """If the session rests. Says in the log what went wrong, and leaves everything as it was then."""
        try:
            await self._archive(organisation, session_id)
        except (Incomplete, Moved, Permanent) as error:
            log.warning("not archived", action="retention.failed", session=session_id, reason=repr(error))

    async def _archive(self, organisation: str, session_id: str) -> None:
        assert self._older_than is not None
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return
            resting = await connection.fetchrow(SQL["resting"], session_id, self._older_than)
            if resting is None:
                return
            old = await self._archives.find(session_id, connection)
            await self._objects.delete_under(folder(organisation, session_id), but=[old.object_key] if old else [])
            extent = Extent(
                organisation,
                session_id,
                resting["seq"],
                resting["entries"],
                resting["inherited_seq"],
                resting["inherited_entries"],
            )
            archive = await self._writer.write(connection, extent, old)
            await failpoints.hit("archive_written")
            if not await self._still_rests(connection, resting, session_id):
                await self._objects.delete(archive.object_key)
                return
            await _record(connection, archive)
        # If this commit's acknowledgement is lost, nobody here knows what is recorded: the object stays.
        log.info("archived", action="retention.archived", session=session_id, bytes=archive.size, seq=archive.last_seq)
        await failpoints.hit("archive_recorded")
        await self._prune(session_id)

    async def _still_rests(self, connection: Connection, before: Row, session_id: str) -> bool:
        await connection.execute(SQL["lock_head_only"], session_id)
        now = await connection.fetchrow(SQL["resting"], session_id, self._older_than)
        return now is not None and (now["seq"], now["epoch"]) == (before["seq"], before["epoch"])

    async def _prune(self, session_id: str) -> None:
        while await self._prune_some(session_id):
            await failpoints.hit("archive_pruning")

    async def _prune_some(self, session_id: str) -> bool:
        """A batch of the rows that the archive has; when none is left, the object that it replaced. True: go on."""
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return False
            if await connection.fetchval(SQL["prune"], session_id, self._batch):
                return True
            archive = await self._archives.find(session_id, connection)
            if archive is not None and archive.replaced is not None:
                await self._objects.delete(archive.replaced)
                await failpoints.hit("archive_replaced")
            await connection.execute(SQL["pruned"], session_id)
            return False


async def _record(connection: Connection, archive: Archive) -> None:
    await connection.execute(
        SQL["record_archive"],
        archive.session_id,
        archive.organisation,
        archive.object_key,
        archive.last_seq,
        archive.entries,
        archive.index_at,
        archive.size,
        archive.sha256,
    )
