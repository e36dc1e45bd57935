"""Runs the garbage collection of the object store: for the command `footplate gc`, and daily on one of the workers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from footplate.config import Settings
from footplate.domain.files.object_gc import ObjectVerdict, RetentionReason
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper
from footplate.store.database import Database
from footplate.store.object_store import Objects
from footplate.store.retention.expiry import SessionExpiry
from footplate.store.retention.object_gc import ObjectGarbageCollector
from footplate.store.session_existence import SessionRegistry
from footplate.wiring.environment_backend import find_leftovers
from footplate.wiring.shared_components import open_database, open_objects

log = structlog.get_logger(__name__)

_INTERVAL: Final = timedelta(days=1)
_CHECK_INTERVAL_SECONDS: Final = 600.0


@dataclass(slots=True)
class GcReport:
    objects: Counter[RetentionReason] = field(default_factory=Counter)
    bytes: Counter[RetentionReason] = field(default_factory=Counter)
    removed: list[ObjectVerdict] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    """Sessions that a worker will delete because of the retention policy."""
    released: list[str] = field(default_factory=list)
    """Sessions whose directories the worker on this host will remove."""
    retained_directories: list[tuple[str, str]] = field(default_factory=list)
    """Expired sessions whose directories stay on this host, each with the reason."""

    def add(self, verdict: ObjectVerdict) -> None:
        self.objects[verdict.reason] += 1
        self.bytes[verdict.reason] += verdict.stored.size
        if verdict.reason.is_deletable:
            self.removed.append(verdict)


async def collect_garbage(settings: Settings, *, dry_run: bool) -> GcReport:
    """Remove unneeded objects, unless `dry_run`. Work that workers do by themselves is only reported."""
    report = GcReport()
    async with open_database(settings) as database:
        objects = await open_objects(settings)
        async for verdict in _create_collector(settings, database, objects).collect(remove=not dry_run):
            report.add(verdict)
        report.expired = [
            row["session_id"] async for row in SessionExpiry(database, settings.retention_delete).list_expired()
        ]
        await _check_host(settings, SessionRegistry(database), report)
    return report


async def _check_host(settings: Settings, sessions: SessionRegistry, report: GcReport) -> None:
    if settings.retention_trees is None:
        return
    in_use = (await asyncio.to_thread(find_leftovers, settings)).sessions
    workspaces = WorkspaceReaper(settings.data_dir, sessions, released_after=settings.retention_trees)
    for organisation, session_id in await workspaces.find_expired(in_use):
        async with sessions.resting(session_id, settings.retention_trees) as files:
            if files is None:
                continue
            reason = await asyncio.to_thread(workspaces.retention_reason, organisation, session_id, files)
        if reason is None:
            report.released.append(session_id)
        else:
            report.retained_directories.append((session_id, reason))


@asynccontextmanager
async def collecting_daily(settings: Settings, database: Database, objects: Objects) -> AsyncIterator[None]:
    """Run the garbage collection once a day, in the background of one worker. It is cancelled when the worker stops."""
    task = asyncio.create_task(
        _collect_daily(database, _create_collector(settings, database, objects)), name="collecting"
    )
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _create_collector(settings: Settings, database: Database, objects: Objects) -> ObjectGarbageCollector:
    return ObjectGarbageCollector(database, objects, settings.gc_grace, cache_retention=settings.retention_caches)


async def _collect_daily(database: Database, collector: ObjectGarbageCollector) -> None:
    while True:
        try:
            if await database.fetch("round_due", _INTERVAL):
                report = GcReport()
                async for verdict in collector.collect(remove=True):
                    report.add(verdict)
                log.info(
                    "garbage collection finished",
                    action="collecting.round",
                    removed=len(report.removed),
                    bytes=sum(verdict.stored.size for verdict in report.removed),
                    kept=report.objects.total() - len(report.removed),
                )
        except Exception as error:  # noqa: BLE001 - the next round retries
            log.warning("garbage collection failed", action="collecting.failed", reason=repr(error))
        await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
