"""Runs the reaper in a worker: at its start, then every few seconds. Also starts the death watch."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.reaper.last_watch import LastWatch
from footplate.environments.reaper.reaping import Reaper
from footplate.environments.reaper.workspaces import Workspaces

log = structlog.get_logger(__name__)

_EVERY: Final = 2.0
_NOTES_EVERY: Final = 30.0
_ALL_EVERY: Final = 86_400.0
_RELEASED_EVERY: Final = 600.0


Sweep = Callable[[], Awaitable[int]]
"""Removes leftovers of a backend that are not processes or directories, such as containers. Returns how many it
removed.
"""


class Patrol:
    def __init__(
        self, data: Path, groups: Sequence[Path], workspaces: Workspaces, sweeps: Sequence[Sweep] = ()
    ) -> None:
        self._reaper = Reaper(data, groups)
        self._watch = LastWatch(data, groups)
        self._workspaces = workspaces
        self._sweeps = sweeps
        self._notes_due = 0.0
        self._all_due = 0.0
        self._release_due = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the reaper in the background. The first pass over the host finishes before the body starts."""
        await self._here()
        task = asyncio.create_task(self._go_on(), name="reaper")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(self._watch.end)

    async def _go_on(self) -> None:
        """Reaps repeatedly. Directories are handled in a separate task, because a large one takes long and must not
        delay the rest.
        """
        directories: asyncio.Task[None] | None = None
        try:
            while True:
                in_use = await self._here()
                if in_use is not None and (directories is None or directories.done()):
                    directories = asyncio.create_task(self._directories(in_use), name="reaper of directories")
                await asyncio.sleep(_EVERY)
        finally:
            if directories is not None:
                directories.cancel()
                await asyncio.gather(directories, return_exceptions=True)

    async def _here(self) -> Collection[str] | None:
        """Reaps this host, without the database. Returns the sessions in use, or None if that is unknown."""
        try:
            self._watch.keep()
            result = await asyncio.to_thread(self._reaper.reap)
            swept = sum([await sweep() for sweep in self._sweeps])
        except Exception:
            log.warning("reaper pass failed; it is retried at the next pass", action="reaper.failed", exc_info=True)
            return None
        if result.anything or swept:
            log.warning(
                "leftovers of ended turns removed",
                action="reaper.removed",
                leases=len(result.over),
                processes=result.processes,
                cgroups=result.cgroups,
                others=swept,
            )
        return result.sessions

    async def _directories(self, in_use: Collection[str]) -> None:
        """Does the first task that is due. Each task needs a current list of the sessions in use, so only one runs at a
        time.
        """
        now = time.monotonic()
        try:
            if now >= self._all_due:
                await self._workspaces.all(in_use)
                self._all_due = now + _ALL_EVERY
            elif now >= self._notes_due:
                await self._workspaces.noted(in_use)
                self._notes_due = now + _NOTES_EVERY
            elif now >= self._release_due:
                await self._workspaces.release(in_use)
                self._release_due = now + _RELEASED_EVERY
        except Exception as error:  # noqa: BLE001 - without the log nothing may be removed
            log.warning("session directories not compared with the log", action="reaper.no_log", reason=repr(error))
