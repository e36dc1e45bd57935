"""Creates the worker's unix sockets in a directory per turn, which is mounted into the turn's environment."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

ListenCallback: TypeAlias = Callable[[Path], Awaitable[None]]
"""Starts to listen at a path that does not exist yet."""
CloseCallback: TypeAlias = Callable[[], Awaitable[None]]


class MountedSockets:
    """The sockets of one turn. They are opened when the environment starts, because most turns need none."""

    def __init__(
        self, directory: Path, listeners: Mapping[str, ListenCallback], on_close: CloseCallback | None = None
    ) -> None:
        """`directory` is created inside a directory that no other user of the machine can enter. Processes in the
        environment reach it through its mount.

        `on_close` closes a listener that these sockets own. The other listeners are closed by their owners.
        """
        self.directory = directory
        self._listeners = listeners
        self._on_close = on_close

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._listeners)

    async def open_sockets(self) -> None:
        await asyncio.to_thread(_create_directory, self.directory)
        for name, listen in self._listeners.items():
            if not (self.directory / name).exists():  # it exists if an earlier start failed and is retried
                await listen(self.directory / name)

    async def close_sockets(self) -> None:
        if self._on_close is not None:
            await self._on_close()
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)


def _create_directory(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711)  # regardless of the process's umask
