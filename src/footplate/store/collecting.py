"""Garbage collection of the object store: compares each folder with the log and removes objects that are not needed.

It is safe to run next to all other work and to be killed at any point:
- An upload may not be in the log yet. Recently written objects are therefore never removed.
- A turn may find objects of an earlier turn and refer to them without writing them again. A session's packs are
  therefore removed only while its head is locked and no turn is in progress, based on the log under that lock. The next
  claim waits for the lock and finds them gone.
- A session may start from a base that was unused a moment ago. A base is therefore removed under the lock that the
  choice of a base also takes.
- A file's bytes have a row or a deletion record in the log from before they are written until they are removed. Bytes
  with neither are unused and stay unused.
- A removal that was interrupted is completed by the next run, because nothing in the log refers to the rest.

An object store belongs to one cell (one deployment) and stores its name. A collector that is connected to another
cell's database finds none of its sessions there, and removes nothing.
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
from footplate.domain.collecting import State, Stored, Told, Verdict, Why, of_files, of_project, of_session
from footplate.domain.errors import Permanent
from footplate.domain.files import FILES
from footplate.domain.snapshots import Snapshot, bases_of
from footplate.store.archives import Archives
from footplate.store.database import SQL, Connection, Database
from footplate.store.objects import Objects
from footplate.store.records import Row
from footplate.store.retention_deletions import named_by_rows
from footplate.store.snapshots import snapshot_of

log = structlog.get_logger(__name__)

CELL: Final = "cell"
"""The object with the name of the cell that the store belongs to."""
PROJECTS: Final = "projects"
_AT_ONCE: Final = 16
_ASKED_AT_ONCE: Final = 1000


class OtherCell(Permanent):
    code = "other_cell"


class Collector:
    def __init__(self, database: Database, objects: Objects, grace: timedelta) -> None:
        """`grace`: the minimum age of an object that may be removed."""
        self._database = database
        self._objects = objects
        self._archives = Archives(database, objects)
        self._grace = grace

    async def verdicts(self, *, remove: bool) -> AsyncIterator[Verdict]:
        """Yields a verdict on every object of the store, folder by folder. With `remove`, an object that is not needed
        has been removed when its verdict is yielded.

        Raises `OtherCell` if the store does not belong to this cell.
        """
        organisations = await self._objects.folders()
        await self._check_cell(organisations, create=remove)
        for organisation in organisations:
            for name in await self._objects.folders(organisation):
                for verdict in await self._folder(organisation, name, remove=remove):
                    yield verdict

    async def _folder(self, organisation: str, name: str, *, remove: bool) -> Sequence[Verdict]:
        if name.startswith(f"{ids.SESSION}_"):
            return await self.session(organisation, name, remove=remove)
        if name == PROJECTS:
            found: list[Verdict] = []
            for project_id in await self._objects.folders(f"{organisation}/{PROJECTS}"):
                found += await self.project(organisation, project_id, remove=remove)
            return found
        if name == FILES:
            return await self.files(organisation, remove=remove)
        return [Verdict(one, Why.UNKNOWN) for one in await self._objects.stored(f"{organisation}/{name}")]

    async def session(self, organisation: str, session_id: str, *, remove: bool) -> Sequence[Verdict]:
        folder = f"{organisation}/{session_id}"
        stored, before = await self._objects.stored(folder), self._before()
        async with self._database.transaction() as connection:
            verdicts = await self._of_session(connection, folder, stored, before)
        if not remove or not _going(verdicts):
            return verdicts
        async with self._database.transaction() as connection:
            # Skipped while the session's archive is being written or its deletion is being finished.
            if not await connection.fetchval(SQL["lock_archiving"], session_id):
                return [verdict for verdict in verdicts if not verdict.why.goes]
            await connection.execute(SQL["lock_head_only"], session_id)
            verdicts = await self._of_session(connection, folder, stored, before)
            await self._remove(verdicts)
        return verdicts

    async def project(self, organisation: str, project_id: str, *, remove: bool) -> Sequence[Verdict]:
        stored, before = await self._objects.stored(f"{organisation}/{PROJECTS}/{project_id}"), self._before()
        bases = f"{bases_of(organisation, project_id)}/"
        others = [Verdict(one, Why.UNKNOWN) for one in stored if not one.key.startswith(bases)]
        stored = [one for one in stored if one.key.startswith(bases)]
        async with self._database.transaction() as connection:
            if remove:
                await connection.execute(SQL["lock_bases"], project_id)
            rows = await connection.fetch(SQL["bases_of_project"], project_id)
            base_trees = {row["tree"] for row in rows}
            verdicts = of_project(base_trees - {None}, stored, untold=None in base_trees, before=before)
            if remove:
                await self._remove(verdicts)
        return [*others, *verdicts]

    async def files(self, organisation: str, *, remove: bool) -> Sequence[Verdict]:
        folder = f"{organisation}/{FILES}"
        stored, before = await self._objects.stored(folder), self._before()
        names = [*{one.key.removeprefix(f"{folder}/").partition("/")[0] for one in stored}]
        rows: list[Row] = []
        for start in range(0, len(names), _ASKED_AT_ONCE):
            rows += await self._database.fetch("told_of_files", names[start : start + _ASKED_AT_ONCE], organisation)
        uploaded, with_deletion_record = ({row["id"] for row in rows if row["noted"] is is_note} for is_note in (False, True))
        verdicts = of_files(uploaded, with_deletion_record, folder, stored, before=before)
        if remove:
            await self._remove(verdicts)
        return verdicts

    async def _of_session(
        self, connection: Connection, folder: str, stored: Sequence[Stored], before: datetime
    ) -> list[Verdict]:
        session_id = folder.rpartition("/")[2]
        references = await _told(connection, session_id)
        verdicts = of_session(references, folder, stored, before=before)
        if all(verdict.why is not Why.UNNAMED for verdict in verdicts):
            return verdicts  # the usual case: no need to search the whole log for object keys
        named = await self._named(connection, folder, session_id)
        return of_session(replace(references, named=named), folder, stored, before=before)

    async def _named(self, connection: Connection, folder: str, session_id: str) -> Collection[str]:
        keys = await named_by_rows(connection, folder, session_id)
        archive = await self._archives.find(session_id, connection)
        if archive is None:
            return keys
        keys |= {archive.object_key, *([archive.replaced] if archive.replaced else [])}
        name = re.compile(f'"({re.escape(folder)}/[^"]+)"')
        async for line in self._archives.lines(archive, "events"):
            keys.update(name.findall(orjson.dumps(line).decode()))
        async for line in self._archives.lines(archive, "entries"):
            if line["object_key"]:
                keys.add(line["object_key"])
        return keys

    async def _remove(self, verdicts: Sequence[Verdict]) -> None:
        unneeded = _going(verdicts)
        await failpoints.hit("collecting_judged")
        for start in range(0, len(unneeded), _AT_ONCE):
            await asyncio.gather(*(self._objects.delete(one.stored.key) for one in unneeded[start : start + _AT_ONCE]))
            await failpoints.hit("collecting_removed")
        for verdict in unneeded:
            log.info(
                "object removed", action="collecting.removed", key=verdict.stored.key, reason=verdict.why.name.lower()
            )

    def _before(self) -> datetime:
        return datetime.now(UTC) - self._grace

    async def _check_cell(self, organisations: Sequence[str], *, create: bool) -> None:
        row = await self._database.fetchrow("cell")
        assert row is not None
        cell = str(row["id"]).encode()
        try:
            stored_cell = b"".join([piece async for piece in self._objects.pieces(CELL)])
        except FileNotFoundError:
            if not await self._may_be_ours(organisations):
                raise _other_cell("None of the sessions in the object store are in the database.") from None
            if create:
                await self._objects.create(CELL, cell)
            return
        if stored_cell != cell:
            raise _other_cell("The object store belongs to another cell.")

    async def _may_be_ours(self, organisations: Sequence[str]) -> bool:
        """Returns whether a store without a cell name may be this cell's: it has no session, or one from the log."""
        any_session = False
        for organisation in organisations:
            found = [name for name in await self._objects.folders(organisation) if name.startswith(f"{ids.SESSION}_")]
            any_session = any_session or bool(found)
            if await self._database.fetch("existing_sessions", found):
                return True
        return not any_session


async def _told(connection: Connection, session_id: str) -> Told:
    row = await connection.fetchrow(SQL["told_of_session"], session_id)
    assert row is not None
    snapshots: dict[str, set[tuple[int, Snapshot]]] = {}
    bases: set[str] = set()
    for found in await connection.fetch(SQL["snapshots_of_session"], session_id):
        place = (found["number"], snapshot_of(found))
        snapshots.setdefault(found["tree"], set()).add(place)
        bases |= {found["base"]} - {None}
    states: tuple[State, ...] = ("deleting", "living", "pinned")
    return Told(
        state=next((state for state in states if row[state]), "unknown"),
        busy=row["busy"],
        forked=row["forked"],
        snapshots=snapshots,
        bases=bases,
    )


def _going(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.why.goes]


def _other_cell(what: str) -> OtherCell:
    return OtherCell(
        f"{what} Nothing was removed.",
        help_text="Check that FOOTPLATE_DATABASE_URL and FOOTPLATE_OBJECTS_URL (or FOOTPLATE_DATA_DIR) match.",
    )
