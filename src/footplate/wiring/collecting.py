"""Garbage collection of the object store: the `footplate gc` command, and a daily run by one of the workers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from footplate.config import Settings
from footplate.domain.collecting import Verdict, Why
from footplate.environments.reaper.reaping import Reaper
from footplate.environments.reaper.workspaces import Workspaces
from footplate.store.collecting import Collector
from footplate.store.database import Database
from footplate.store.expiry import Expiry
from footplate.store.objects import Objects
from footplate.store.session_log import SessionLog
from footplate.wiring.environments import own_groups
from footplate.wiring.parts import open_database

log = structlog.get_logger(__name__)

_EVERY: Final = timedelta(days=1)
_LOOK_EVERY: Final = 600.0


@dataclass(slots=True)
class Collected:
    objects: Counter[Why] = field(default_factory=Counter)
    bytes: Counter[Why] = field(default_factory=Counter)
    going: list[Verdict] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    """Sessions that a worker will delete because of the retention policy."""
    released: list[str] = field(default_factory=list)
    """Sessions whose directories the worker on this host will remove."""
    kept_here: list[tuple[str, str]] = field(default_factory=list)
    """Expired sessions whose directories stay on this host, each with the reason."""

    def tell(self, verdict: Verdict) -> None:
        self.objects[verdict.why] += 1
        self.bytes[verdict.why] += verdict.stored.size
        if verdict.why.goes:
            self.going.append(verdict)


async def collect(settings: Settings, *, dry: bool) -> Collected:
    """Remove unneeded objects, unless `dry_run`. Work that workers do by themselves is only reported."""
    found = Collected()
    async with open_database(settings) as database:
        objects = Objects.open(settings.objects_url, settings.data_dir)
        async for verdict in Collector(database, objects, settings.gc_grace).verdicts(remove=not dry):
            found.tell(verdict)
        found.expired = [row["session_id"] async for row in Expiry(database, settings.retention_delete).due()]
        await _here(settings, SessionLog(database), found)
    return found


async def _here(settings: Settings, sessions: SessionLog, found: Collected) -> None:
    if settings.retention_trees is None:
        return
    in_use = await asyncio.to_thread(lambda: Reaper(settings.data_dir, own_groups()).look().sessions)
    workspaces = Workspaces(settings.data_dir, sessions, released_after=settings.retention_trees)
    for organisation, session_id in await workspaces.expired(in_use):
        async with sessions.resting(session_id, settings.retention_trees) as files:
            if files is None:
                continue
            why = await asyncio.to_thread(workspaces.why_kept, organisation, session_id, files)
        if why is None:
            found.released.append(session_id)
        else:
            found.kept_here.append((session_id, why))


@asynccontextmanager
async def collecting(database: Database, objects: Objects, grace: timedelta) -> AsyncIterator[None]:
    """Run the garbage collection once a day, in the background of one worker. It is cancelled when the worker stops."""
    task = asyncio.create_task(_rounds(database, Collector(database, objects, grace)), name="collecting")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _rounds(database: Database, collector: Collector) -> None:
    while True:
        try:
            if await database.fetch("round_due", _EVERY):
                found = Collected()
                async for verdict in collector.verdicts(remove=True):
                    found.tell(verdict)
                log.info(
                    "garbage collection finished",
                    action="collecting.round",
                    removed=len(found.going),
                    bytes=sum(verdict.stored.size for verdict in found.going),
                    kept=found.objects.total() - len(found.going),
                )
        except Exception as error:  # noqa: BLE001 - the next round retries
            log.warning("garbage collection failed", action="collecting.failed", reason=repr(error))
        await asyncio.sleep(_LOOK_EVERY)
