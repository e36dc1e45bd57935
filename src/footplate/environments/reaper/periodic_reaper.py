"""Runs the reaper in a worker, at start-up and then every few seconds.

The reaper removes processes, control groups and directories whose turn or session has ended. This module also starts
the death watch, a separate process that waits for the worker's end. If the worker is killed, the death watch removes
the processes and control groups of the worker's turns.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.reaper.death_watch import DeathWatch
from footplate.environments.reaper.expired_lease_reaper import Reaper
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper

log = structlog.get_logger(__name__)

_INTERVAL: Final = 2.0
_DELETED_INTERVAL: Final = 30.0
_FULL_SCAN_INTERVAL: Final = 86_400.0
_RELEASE_INTERVAL: Final = 600.0


SweepCallback = Callable[[], Awaitable[int]]
"""Removes leftovers of a backend that are not processes or directories, such as containers. Returns how many it
removed.
"""


class PeriodicReaper:
    def __init__(
        self, data: Path, groups: Sequence[Path], workspaces: WorkspaceReaper, sweeps: Sequence[SweepCallback] = ()
    ) -> None:
        self._reaper = Reaper(data, groups)
        self._death_watch = DeathWatch(data, groups)
        self._workspaces = workspaces
        self._sweeps = sweeps
        self._deleted_due = 0.0
        self._full_scan_due = 0.0
        self._release_due = 0.0

    @asynccontextmanager
    async def run_in_background(self) -> AsyncIterator[None]:
        """Runs the reaper in the background. The first pass over the host finishes before the body starts."""
        await self._reap_host()
        task = asyncio.create_task(self._run_forever(), name="reaper")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(self._death_watch.stop)

    async def _run_forever(self) -> None:
        """Reaps repeatedly. Directories are handled in a separate task, because a large one takes long and must not
        delay the rest.
        """
        directories: asyncio.Task[None] | None = None
        try:
            while True:
                in_use = await self._reap_host()
                if in_use is not None and (directories is None or directories.done()):
                    directories = asyncio.create_task(self._reap_directories(in_use), name="directory reaper")
                await asyncio.sleep(_INTERVAL)
        finally:
            if directories is not None:
                directories.cancel()
                await asyncio.gather(directories, return_exceptions=True)

    async def _reap_host(self) -> Collection[str] | None:
        """Reaps this host, without the database. Returns the sessions in use, or None if that is unknown."""
        try:
            self._death_watch.ensure_running()
            result = await asyncio.to_thread(self._reaper.reap)
            swept = sum([await sweep() for sweep in self._sweeps])
        except Exception:
            log.warning("cleanup of ended turns failed; will retry", action="reaper.failed", exc_info=True)
            return None
        if result.has_leftovers or swept:
            log.warning(
                "leftovers of ended turns removed",
                action="reaper.removed",
                leases=len(result.over),
                processes=result.processes,
                cgroups=result.cgroups,
                others=swept,
            )
        return result.sessions

    async def _reap_directories(self, in_use: Collection[str]) -> None:
        """Does the first task that is due. Each task needs a current list of the sessions in use, so only one runs at a
        time.
        """
        now = time.monotonic()
        try:
            if now >= self._full_scan_due:
                await self._workspaces.remove_unknown(in_use)
                self._full_scan_due = now + _FULL_SCAN_INTERVAL
            elif now >= self._deleted_due:
                await self._workspaces.remove_deleted(in_use)
                self._deleted_due = now + _DELETED_INTERVAL
            elif now >= self._release_due:
                await self._workspaces.release_expired(in_use)
                self._release_due = now + _RELEASE_INTERVAL
        except Exception as error:  # noqa: BLE001 - without the log nothing may be removed
            log.warning(
                "could not check session directories against the database; none were removed",
                action="reaper.no_log",
                reason=repr(error),
            )
