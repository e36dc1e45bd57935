"""Enforces the disk limit of a session by measuring its files while its sandbox or container runs.

Not every file system supports quotas per directory, so a session can exceed its limit between two measurements. The
free disk space is therefore checked every second. If it falls by more than the session may still use, the session is
measured at once. A session over its limit loses its processes, and can then delete files but not let any file grow.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.isolation import disk_usage

log = structlog.get_logger(__name__)

_MARKER_NAME: Final = "overfull"
_FREE_SPACE_INTERVAL: Final = 1.0
_MEASURE_INTERVAL: Final = 2.0
_MEASURE_TIME_DIVISOR: Final = 20
"""Measuring takes at most one twentieth of a CPU core, unless the disk fills up."""


class DiskWatch:
    def __init__(self, state: Path, directories: Sequence[Path], limit: int) -> None:
        """`state` is the directory for the marker that later turns read. No process of the session can reach the
        marker.
        """
        self._marker = state / _MARKER_NAME
        self._directories = [str(directory) for directory in directories]
        self._limit = limit
        self.is_full = self._marker.exists()

    async def watch(self, on_exceeded: Callable[[], Awaitable[None]]) -> None:
        """Watches until it is cancelled. Awaits `on_exceeded` when the session exceeds its limit, or grows further
        beyond it.
        """
        before, remaining = 0, self._limit
        free = await asyncio.to_thread(self._free)
        due = time.monotonic() + _MEASURE_INTERVAL
        while True:
            await asyncio.sleep(_FREE_SPACE_INTERVAL)
            now_free = await asyncio.to_thread(self._free)
            if time.monotonic() < due and free - now_free < remaining:
                continue
            used, cpu_seconds = await asyncio.to_thread(self._measure)
            due = time.monotonic() + max(_MEASURE_INTERVAL, _MEASURE_TIME_DIVISOR * cpu_seconds)
            free, remaining = now_free, max(self._limit - used, 0)
            await self._update(used, before, on_exceeded)
            before = used

    async def _update(self, used: int, before: int, on_exceeded: Callable[[], Awaitable[None]]) -> None:
        over = used > self._limit
        grown = over and (not self.is_full or 0 < before < used)
        if over != self.is_full:
            self.is_full = over
            await asyncio.to_thread(self._write_marker)
        if grown:
            log.warning("session exceeds its disk limit", action="sandbox.disk_full", used=used)
            await on_exceeded()

    def _write_marker(self) -> None:
        if self.is_full:
            self._marker.touch()
        else:
            self._marker.unlink(missing_ok=True)

    def _measure(self) -> tuple[int, float]:
        """Returns the used bytes and the CPU time of measuring them. Wall time would delay the next measurement by
        minutes on a machine that is merely busy.
        """
        began = time.thread_time()
        return self._used(), time.thread_time() - began

    def _used(self) -> int:
        return sum(disk_usage.measure_usage(directory) for directory in self._directories)

    def _free(self) -> int:
        """Returns the free space. Inodes count as in `disk_usage`, because a disk can run out of them too."""
        systems = [os.statvfs(directory) for directory in self._directories]
        return sum(found.f_bavail * found.f_frsize + found.f_favail * disk_usage.MIN_FILE_BYTES for found in systems)
