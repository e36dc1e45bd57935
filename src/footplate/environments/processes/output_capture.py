"""Reads the output of a command continuously, so that the command does not block when it prints.

The amount of output in memory is limited (see `output_buffer`).
"""

import array
import asyncio
import fcntl
import os
import termios
from collections.abc import Callable
from typing import Final

from footplate.environments.processes.output_buffer import OutputBuffer

DEFAULT_OUTPUT_LIMIT: Final = 256 * 1024
"""The maximum number of bytes in memory, per stream; `output_buffer` stores more in a file."""
_CHUNK: Final = 1 << 16


class PipeReader:
    """Reads a pipe on the event loop and passes every chunk to `sink`. The command gets the `writer` end."""

    def __init__(self, sink: Callable[[bytes], None], at_end: Callable[[], None] = lambda: None) -> None:
        self._sink = sink
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._fd, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._fd, False)
        self._is_open = True
        self._loop.add_reader(self._fd, self._read, _CHUNK)

    @property
    def is_open(self) -> bool:
        return self._is_open

    def close_writer(self) -> None:
        """Closes the writer end. The command has its own copy; while this one is open, the end of the pipe would
        never be seen.
        """
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Reads only what is in the pipe now. A background command may never stop printing."""
        available = array.array("i", [0])
        if self._is_open:
            fcntl.ioctl(self._fd, termios.FIONREAD, available)
        remaining = available[0]
        while remaining > 0 and (count := self._read(min(remaining, _CHUNK))):
            remaining -= count

    def discard(self) -> None:
        """Continues to read but drops the data, because a process that still prints would otherwise block or die."""
        self._sink = lambda _: None

    def close(self) -> None:
        self.close_writer()
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self, size: int) -> int:
        if not self._is_open:
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


class CapturedOutput:
    """Captures standard output and standard error of a command, or of a shell for one command after another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffers = (OutputBuffer(limit), OutputBuffer(limit))
        self.readers = (PipeReader(self._append_stdout), PipeReader(self._append_stderr))

    @property
    def is_open(self) -> bool:
        return any(reader.is_open for reader in self.readers)

    def close_writers(self) -> None:
        for reader in self.readers:
            reader.close_writer()

    def collect(self) -> tuple[OutputBuffer, OutputBuffer]:
        """Returns what was printed to standard output and standard error since the last call."""
        for reader in self.readers:
            reader.drain()
        buffers, self._buffers = self._buffers, (OutputBuffer(self._limit), OutputBuffer(self._limit))
        return buffers

    def discard(self) -> None:
        for reader in self.readers:
            reader.discard()
        self._close_buffers()

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self._close_buffers()

    def _close_buffers(self) -> None:
        """Closes the current buffers. Buffers that `collect` returned belong to its caller."""
        for buffer in self._buffers:
            buffer.close()

    def _append_stdout(self, data: bytes) -> None:
        self._buffers[0].add(data)

    def _append_stderr(self, data: bytes) -> None:
        self._buffers[1].add(data)


async def write_all(fd: int, data: bytes) -> None:
    """Writes to a non-blocking pipe and waits for its reader as long as necessary. Raises BrokenPipeError."""
    loop = asyncio.get_running_loop()
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(fd, remaining) :]
        except BlockingIOError:
            writable = asyncio.Event()
            loop.add_writer(fd, writable.set)
            try:
                await writable.wait()
            finally:
                loop.remove_writer(fd)
