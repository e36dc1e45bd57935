"""Reads the output of a command continuously, so that no command blocks on the worker, and within a memory limit."""

import array
import asyncio
import fcntl
import os
import termios
from collections.abc import Callable
from typing import Final

from footplate.environments.kept import Kept

DEFAULT_LIMIT: Final = 256 * 1024
"""The maximum number of bytes in memory, per stream; `output_buffer` stores more in a file."""
_CHUNK: Final = 1 << 16


class Reader:
    """Reads a pipe on the event loop and passes every chunk to `sink`. The command gets the `writer` end."""

    def __init__(self, sink: Callable[[bytes], None], at_end: Callable[[], None] = lambda: None) -> None:
        self._sink = sink
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._fd, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._fd, False)
        self._open = True
        self._loop.add_reader(self._fd, self._read, _CHUNK)

    @property
    def open(self) -> bool:
        return self._open

    def release(self) -> None:
        """Closes the writer end. The command has its own copy; while this one is open, the end of the pipe would
        never be seen.
        """
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Reads only what is in the pipe now. A background command may never stop printing."""
        available = array.array("i", [0])
        if self._open:
            fcntl.ioctl(self._fd, termios.FIONREAD, available)
        remaining = available[0]
        while remaining > 0 and (count := self._read(min(remaining, _CHUNK))):
            remaining -= count

    def discard(self) -> None:
        """Continues to read but drops the data, because a process that still prints would otherwise block or die."""
        self._sink = lambda _: None

    def close(self) -> None:
        self.release()
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self, size: int) -> int:
        if not self._open:
            return 0
        try:
            data = os.read(self._fd, size)
        except BlockingIOError:
            return 0
        if not data:
            self.close()
            self._at_end()
            return 0
        self._sink(data)
        return len(data)


class Output:
    """Captures standard output and standard error of a command, or of a shell for one command after another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = (Kept(limit), Kept(limit))
        self.readers = (Reader(self._printed), Reader(self._complained))

    @property
    def open(self) -> bool:
        return any(reader.open for reader in self.readers)

    def release(self) -> None:
        for reader in self.readers:
            reader.release()

    def take(self) -> tuple[Kept, Kept]:
        """Returns what was printed to standard output and standard error since the last call."""
        for reader in self.readers:
            reader.drain()
        buffers, self._kept = self._kept, (Kept(self._limit), Kept(self._limit))
        return buffers

    def discard(self) -> None:
        for reader in self.readers:
            reader.discard()
        self._close_kept()

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self._close_kept()

    def _close_kept(self) -> None:
        """Closes the current buffers. Buffers that `collect` returned belong to its caller."""
        for buffer in self._kept:
            buffer.close()

    def _printed(self, data: bytes) -> None:
        self._kept[0].add(data)

    def _complained(self, data: bytes) -> None:
        self._kept[1].add(data)


async def write_all(fd: int, data: bytes) -> None:
    """Writes to a non-blocking pipe and waits for its reader as long as necessary. Raises BrokenPipeError."""
    loop = asyncio.get_running_loop()
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            room = asyncio.Event()
            loop.add_writer(fd, room.set)
            try:
                await room.wait()
            finally:
                loop.remove_writer(fd)
