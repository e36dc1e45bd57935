"""Reading what a command prints: without pause, so that nothing ever blocks on us, and within a bound of memory."""

import array
import asyncio
import fcntl
import os
import termios
from collections.abc import Callable
from typing import Final

from footplate.environments.kept import Kept

DEFAULT_LIMIT: Final = 256 * 1024
"""In memory, of one stream; `kept` has the rest in a file."""
_CHUNK: Final = 1 << 16


class Reader:
    """A pipe, read on the event loop; `sink` gets every chunk as it comes. A command gets the `writer`."""

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
        """The command has its own copy now; without this one the end of the pipe can be seen."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Read what is in the pipe at this moment and no more: a background command may never stop printing."""
        waiting = array.array("i", [0])
        if self._open:
            fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
        left = waiting[0]
        while left > 0 and (got := self._read(min(left, _CHUNK))):
            left -= got

    def discard(self) -> None:
        """Go on reading for whoever still prints, who would otherwise block or die, but keep nothing."""
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
    """Standard output and error of a command, or of a shell for many commands in turn."""

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
        """What was printed since the last time, as standard output and as standard error."""
        for reader in self.readers:
            reader.drain()
        kept, self._kept = self._kept, (Kept(self._limit), Kept(self._limit))
        return kept

    def discard(self) -> None:
        for reader in self.readers:
            reader.discard()
        self._close_kept()

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self._close_kept()

    def _close_kept(self) -> None:
        """What nobody took. What somebody took is theirs."""
        for kept in self._kept:
            kept.close()

    def _printed(self, data: bytes) -> None:
        self._kept[0].add(data)

    def _complained(self, data: bytes) -> None:
        self._kept[1].add(data)


async def write_all(fd: int, data: bytes) -> None:
    """Write to a non-blocking pipe, waiting for its reader as long as it takes. Raises BrokenPipeError."""
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
