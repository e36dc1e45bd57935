"""Garbage collection of the object store: removes objects to which the session log no longer refers.

The collection can run next to all other work and can be killed at any point, because the next run continues. Recently
written objects are never removed, because an upload may not be in the log yet. Packs and bases of snapshots are removed
under locks that turns and new sessions also take. Nothing is removed if the object store and the database belong to
different cells (deployments).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson
import structlog

from footplate import failpoints
from footplate.domain import ids
from footplate.domain.errors import Permanent
from footplate.domain.files.object_gc import (
    ObjectVerdict,
    RetentionReason,
    SessionReferences,
    SessionState,
    StoredObject,
    judge_base_packs,
    judge_caches,
    judge_session_objects,
    judge_uploaded_files,
)
from footplate.domain.files.snapshots import Snapshot, base_packs_prefix
from footplate.domain.files.uploaded_files import FILES_FOLDER
from footplate.domain.projects.setup import cache_folder
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database
from footplate.store.log.files.file_snapshots import load_snapshot
from footplate.store.object_store import Objects
from footplate.store.retention.deletion_cleanup import find_object_keys
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

CELL_OBJECT: Final = "cell"
"""The object with the name of the cell that the store belongs to."""
PROJECTS_FOLDER: Final = "projects"
_CONCURRENT_DELETES: Final = 16
_FILES_PER_QUERY: Final = 1000


class OtherCell(Permanent):
    code = "other_cell"


class ObjectGarbageCollector:
    """Collects unneeded objects. These rules prevent races:

    - A turn may find objects of an earlier turn and refer to them without writing them again. A session's packs are
      therefore removed only while its head row is locked and no turn is in progress. The next claim waits for the lock,
      and then finds the packs gone.
    - A session may start from a base that was unused a moment ago. A base is therefore removed under the lock that the
      choice of a base also takes.
    - The bytes of an uploaded file have a row or a deletion record from before they are written until they are removed.
      Bytes with neither are unused and stay unused.
    """

    def __init__(
        self, database: Database, objects: Objects, grace: timedelta, *, cache_retention: timedelta | None = None
    ) -> None:
        """`grace`: the minimum age of an object that may be removed. `cache_retention`: the time after which an unused
        cache of a project is removed. None: never.
        """
        self._database = database
        self._objects = objects
        self._archives = ArchiveReader(database, objects)
        self._grace = grace
        self._cache_retention = cache_retention

    async def collect(self, *, remove: bool) -> AsyncIterator[ObjectVerdict]:
        """Yields a verdict on every object of the store, folder by folder. With `remove`, an object that is not needed
        has been removed when its verdict is yielded.

        Raises `OtherCell` if the store does not belong to this cell.
        """
        organisations = await self._objects.list_folders()
        await self._check_cell(organisations, create=remove)
        for organisation in organisations:
            for name in await self._objects.list_folders(organisation):
                for verdict in await self._collect_folder(organisation, name, remove=remove):
                    yield verdict

    async def _collect_folder(self, organisation: str, name: str, *, remove: bool) -> Sequence[ObjectVerdict]:
        if name.startswith(f"{ids.SESSION}_"):
            return await self.collect_session(organisation, name, remove=remove)
        if name == PROJECTS_FOLDER:
            found: list[ObjectVerdict] = []
            for project_id in await self._objects.list_folders(f"{organisation}/{PROJECTS_FOLDER}"):
                found += await self.collect_project(organisation, project_id, remove=remove)
            return found
        if name == FILES_FOLDER:
            return await self.collect_files(organisation, remove=remove)
        return [
            ObjectVerdict(one, RetentionReason.UNKNOWN)
            for one in await self._objects.list_objects(f"{organisation}/{name}")
        ]

    async def collect_session(self, organisation: str, session_id: str, *, remove: bool) -> Sequence[ObjectVerdict]:
        folder = f"{organisation}/{session_id}"
        stored, before = await self._objects.list_objects(folder), self._cutoff_time()
        async with self._database.transaction() as connection:
            verdicts = await self._judge_session(connection, folder, stored, before)
        if not remove or not _unneeded_objects(verdicts):
            return verdicts
        async with self._database.transaction() as connection:
            # Skipped while the session's archive is being written or its deletion is being finished.
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return [verdict for verdict in verdicts if not verdict.reason.is_deletable]
            await connection.execute(SQL["lock_head_only"], session_id)
            verdicts = await self._judge_session(connection, folder, stored, before)
            await self._remove_unneeded(verdicts)
        return verdicts

    async def collect_project(self, organisation: str, project_id: str, *, remove: bool) -> Sequence[ObjectVerdict]:
        stored, before = (
            await self._objects.list_objects(f"{organisation}/{PROJECTS_FOLDER}/{project_id}"),
            self._cutoff_time(),
        )
        bases = f"{base_packs_prefix(organisation, project_id)}/"
        caches = f"{cache_folder(organisation, project_id)}/"
        others = [
            ObjectVerdict(one, RetentionReason.UNKNOWN) for one in stored if not one.key.startswith((bases, caches))
        ]
        cached = [one for one in stored if one.key.startswith(caches)]
        others += await self._collect_caches(organisation, project_id, cached, before, remove=remove)
        stored = [one for one in stored if one.key.startswith(bases)]
        async with self._database.transaction() as connection:
            if remove:
                await connection.execute(SQL["lock_bases"], project_id)
            rows = await connection.fetch(SQL["bases_of_project"], project_id)
            base_trees = {row["tree"] for row in rows}
            verdicts = judge_base_packs(base_trees - {None}, stored, has_unknown_base=None in base_trees, before=before)
            if remove:
                await self._remove_unneeded(verdicts)
        return [*others, *verdicts]

    async def _collect_caches(
        self, organisation: str, project_id: str, stored: Sequence[StoredObject], before: datetime, *, remove: bool
    ) -> Sequence[ObjectVerdict]:
        """A cache that is removed meanwhile is not missed: a session whose cache is missing starts without one."""
        if remove and self._cache_retention is not None:
            await self._database.fetch("remove_unused_caches", organisation, project_id, self._cache_retention)
        rows = await self._database.fetch("caches_of_project", organisation, project_id)
        verdicts = judge_caches({f"{row['digest']}.{row['sha256']}" for row in rows}, stored, before=before)
        if remove:
            await self._remove_unneeded(verdicts)
        return verdicts

    async def collect_files(self, organisation: str, *, remove: bool) -> Sequence[ObjectVerdict]:
        folder = f"{organisation}/{FILES_FOLDER}"
        stored, before = await self._objects.list_objects(folder), self._cutoff_time()
        names = [*{one.key.removeprefix(f"{folder}/").partition("/")[0] for one in stored}]
        rows: list[Row] = []
        for start in range(0, len(names), _FILES_PER_QUERY):
            rows += await self._database.fetch("told_of_files", names[start : start + _FILES_PER_QUERY], organisation)
        uploaded, with_deletion_record = (
            {row["id"] for row in rows if row["noted"] is is_note} for is_note in (False, True)
        )
        verdicts = judge_uploaded_files(uploaded, with_deletion_record, folder, stored, before=before)
        if remove:
            await self._remove_unneeded(verdicts)
        return verdicts

    async def _judge_session(
        self, connection: Connection, folder: str, stored: Sequence[StoredObject], before: datetime
    ) -> list[ObjectVerdict]:
        session_id = folder.rpartition("/")[2]
        references = await _load_references(connection, session_id)
        verdicts = judge_session_objects(references, folder, stored, before=before)
        if all(verdict.reason is not RetentionReason.UNNAMED for verdict in verdicts):
            return verdicts  # the usual case: no need to search the whole log for object keys
        named = await self._find_named_keys(connection, folder, session_id)
        return judge_session_objects(replace(references, referenced_keys=named), folder, stored, before=before)

    async def _find_named_keys(self, connection: Connection, folder: str, session_id: str) -> Collection[str]:
        keys = await find_object_keys(connection, folder, session_id)
        archive = await self._archives.find_archive(session_id, connection)
        if archive is None:
            return keys
        keys |= {archive.object_key, *([archive.replaced] if archive.replaced else [])}
        name = re.compile(f'"({re.escape(folder)}/[^"]+)"')
        async for line in self._archives.read_lines(archive, "events"):
            keys.update(name.findall(orjson.dumps(line).decode()))
        async for line in self._archives.read_lines(archive, "entries"):
            if line["object_key"]:
                keys.add(line["object_key"])
        return keys

    async def _remove_unneeded(self, verdicts: Sequence[ObjectVerdict]) -> None:
        unneeded = _unneeded_objects(verdicts)
        await failpoints.hit("collecting_judged")
        for start in range(0, len(unneeded), _CONCURRENT_DELETES):
            await asyncio.gather(
                *(self._objects.delete_object(one.stored.key) for one in unneeded[start : start + _CONCURRENT_DELETES])
            )
            await failpoints.hit("collecting_removed")
        for verdict in unneeded:
            log.info(
                "object removed",
                action="collecting.removed",
                key=verdict.stored.key,
                reason=verdict.reason.name.lower(),
            )

    def _cutoff_time(self) -> datetime:
        return datetime.now(UTC) - self._grace

    async def _check_cell(self, organisations: Sequence[str], *, create: bool) -> None:
        row = await self._database.fetchrow("cell")
        assert row is not None
        cell = str(row["id"]).encode()
        try:
            stored_cell = b"".join([piece async for piece in self._objects.read_chunks(CELL_OBJECT)])
        except FileNotFoundError:
            if not await self._may_belong_to_cell(organisations):
                raise _other_cell_error("None of the sessions in the object store are in the database.") from None
            if create:
                await self._objects.create(CELL_OBJECT, cell)
            return
        if stored_cell != cell:
            raise _other_cell_error("The object store belongs to another cell.")

    async def _may_belong_to_cell(self, organisations: Sequence[str]) -> bool:
        """Returns whether a store without a cell name may be this cell's: it has no session, or one from the log."""
        any_session = False
        for organisation in organisations:
            found = [
                name for name in await self._objects.list_folders(organisation) if name.startswith(f"{ids.SESSION}_")
            ]
            any_session = any_session or bool(found)
            if await self._database.fetch("existing_sessions", found):
                return True
        return not any_session


async def _load_references(connection: Connection, session_id: str) -> SessionReferences:
    row = await connection.fetchrow(SQL["told_of_session"], session_id)
    assert row is not None
    snapshots: dict[str, set[tuple[int, Snapshot]]] = {}
    bases: set[str] = set()
    for found in await connection.fetch(SQL["snapshots_of_session"], session_id):
        numbered = (found["number"], load_snapshot(found))
        snapshots.setdefault(found["tree"], set()).add(numbered)
        bases |= {found["base"]} - {None}
    states: tuple[SessionState, ...] = ("deleting", "living", "pinned")
    return SessionReferences(
        state=next((state for state in states if row[state]), "unknown"),
        is_busy=row["busy"],
        is_fork=row["forked"],
        snapshots=snapshots,
        bases=bases,
    )


def _unneeded_objects(verdicts: Sequence[ObjectVerdict]) -> list[ObjectVerdict]:
    return [verdict for verdict in verdicts if verdict.reason.is_deletable]


def _other_cell_error(problem: str) -> OtherCell:
    return OtherCell(
        f"{problem} Nothing was removed.",
        help_text="Check that FOOTPLATE_DATABASE_URL and FOOTPLATE_OBJECTS_URL (or FOOTPLATE_DATA_DIR) belong to the "
        "same deployment.",
    )
