"""The disk limit of a session: somebody looks at what its files take for as long as its sandbox lives.

A file system has no quota for a directory, so there is a moment between two looks in which a session can take more than
it may. To keep it short: the free space of the disk is asked for every second, and whenever more of it is gone than the
session had left, its files are counted at once. A session that is over its limit loses its sandbox, and until it is
below again, in this turn or a later one, it can delete files and let none grow.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.sandbox import disk

log = structlog.get_logger(__name__)

_MARK: Final = "overfull"
_ASK_EVERY: Final = 1.0
_COUNT_EVERY: Final = 2.0
_SHARE_OF_COUNTING: Final = 20
"""Counting takes at most the twentieth part of one thread's time, unless the disk fills."""


class DiskWatch:
    def __init__(self, state: Path, places: Sequence[Path], limit: int) -> None:
        """`state` is where it notes what later turns have to know; nothing of the session's may reach it."""
        self._mark = state / _MARK
        self._places = [str(place) for place in places]
        self._limit = limit
        self.full = self._mark.exists()

    async def watch(self, end: Callable[[], Awaitable[None]]) -> None:
        """Until it is cancelled. `end` is awaited when a session grew beyond its limit, or grows further."""
        before, left = 0, self._limit
        free = await asyncio.to_thread(self._free)
        due = time.monotonic() + _COUNT_EVERY
        while True:
            await asyncio.sleep(_ASK_EVERY)
            now_free = await asyncio.to_thread(self._free)
            if time.monotonic() < due and free - now_free < left:
                continue
            began = time.monotonic()
            used = await asyncio.to_thread(self._used)
            due = time.monotonic() + max(_COUNT_EVERY, _SHARE_OF_COUNTING * (time.monotonic() - began))
            free, left = now_free, max(self._limit - used, 0)
            await self._judge(used, before, end)
            before = used

    async def _judge(self, used: int, before: int, end: Callable[[], Awaitable[None]]) -> None:
        over = used > self._limit
        grown = over and (not self.full or 0 < before < used)
        if over != self.full:
            self.full = over
            await asyncio.to_thread(self._note)
        if grown:
            log.warning("disk limit reached", action="sandbox.disk_full", used=used)
            await end()

    def _note(self) -> None:
        if self.full:
            self._mark.touch()
        else:
            self._mark.unlink(missing_ok=True)

    def _used(self) -> int:
        return sum(disk.used(place) for place in self._places)

    def _free(self) -> int:
        """Files count as in `disk`: a disk can run out of them too."""
        systems = [os.statvfs(place) for place in self._places]
        return sum(found.f_bavail * found.f_frsize + found.f_favail * disk.LEAST for found in systems)
