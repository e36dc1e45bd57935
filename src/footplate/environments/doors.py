"""Sockets of ours that a turn's environment may connect to, in a directory of the turn's own that is mounted there."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Listen: TypeAlias = Callable[[Path], Awaitable[None]]
"""Begin to listen at a path that does not exist yet."""
End: TypeAlias = Callable[[], Awaitable[None]]


class Doors:
    """Opened when the environment starts, and not before: most turns need none."""

    def __init__(self, directory: Path, listeners: Mapping[str, Listen], at_end: End | None = None) -> None:
        """`directory` is made, in one that nobody else on the machine gets into: inside, it is reached by its mount.

        `at_end`: what ends with them; the rest has an owner elsewhere.
        """
        self.directory = directory
        self._listeners = listeners
        self._at_end = at_end

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._listeners)

    async def open(self) -> None:
        await asyncio.to_thread(_make, self.directory)
        for name, listen in self._listeners.items():
            if not (self.directory / name).exists():  # a start that failed may be tried again
                await listen(self.directory / name)

    async def close(self) -> None:
        if self._at_end is not None:
            await self._at_end()
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)


def _make(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711)  # whatever the process's mask is
