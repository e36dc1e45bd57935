"""Buffers one output stream of a command without using much memory, however much the command prints.

Memory holds the beginning and the end of the output, up to a limit. If the output is longer, a temporary file holds a
longer beginning and end. Bytes that do not fit into the file either are dropped and only counted.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import Final

MAX_SPOOLED_BYTES: Final = 10 * 1024 * 1024
"""The maximum number of bytes in the file, per stream of a command."""
_CHUNK_BYTES: Final = 1 << 20


class OutputBuffer:
    """Buffers one output stream. The temporary file has no name. Its second half is a ring buffer
    with the newest output.
    """

    def __init__(self, limit: int, *, max_spooled: int = MAX_SPOOLED_BYTES) -> None:
        """`limit` is the maximum number of bytes in memory."""
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._spool_half = max(max_spooled // 2, limit)
        self._file = -1
        self._closed = False
        self.size = 0
        """The number of bytes that were printed."""

    def __del__(self) -> None:
        self.close()

    @property
    def truncated(self) -> bool:
        return self.size > len(self._head) + min(len(self._tail), self._half)

    @property
    def spooled_size(self) -> int:
        """The number of bytes that `pieces` returns; 0 if all output fits in memory."""
        return min(self.size, 2 * self._spool_half) if self._file >= 0 else 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if self._file < 0 and not self._closed and len(data) > room + self._half - len(self._tail):
            self._open_spool()
        if self._file >= 0:
            self._spool(data)
        self.size += len(data)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:  # trimming rarely keeps appends cheap
            del self._tail[: -self._half]

    def excerpt(self) -> bytes:
        """Returns the beginning and the end, with a line between them that states how much is omitted."""
        tail = bytes(self._tail[-self._half :])
        omitted = self.size - len(self._head) - len(tail)
        if not omitted:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[... {omitted} bytes omitted ...]\n".encode() + tail

    def pieces(self) -> Iterator[bytes]:
        """Yields the content of the file in order. Blocks."""
        half = self._spool_half
        yield from self._read(0, min(self.size, half))
        if self.size > 2 * half:
            yield f"\n[... {self.size - 2 * half} bytes omitted ...]\n".encode()
            begin = (self.size - half) % half
            yield from self._read(half + begin, 2 * half)
            yield from self._read(half, half + begin)
        elif self.size > half:
            yield from self._read(half, self.size)

    def close(self) -> None:
        """Closes the file. The part in memory stays available."""
        self._closed = True
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open_spool(self) -> None:
        try:
            with tempfile.TemporaryFile(buffering=0) as file:
                self._file = os.dup(file.fileno())
        except OSError:
            self.close()
            return
        size, self.size = self.size, 0
        self._spool(bytes(self._head + self._tail))
        self.size = size

    def _spool(self, data: bytes) -> None:
        """Writes to the file. If the worker's disk is full, the buffer continues in memory only."""
        view, position = memoryview(data), self.size
        half = self._spool_half
        while view:
            offset = position if position < half else half + (position - half) % half
            room = (half if position < half else 2 * half) - offset
            try:
                written = os.pwrite(self._file, view[:room], offset)
            except OSError:
                self.close()
                return
            view, position = view[written:], position + written

    def _read(self, start: int, end: int) -> Iterator[bytes]:
        while start < end and (data := os.pread(self._file, min(_CHUNK_BYTES, end - start), start)):
            start += len(data)
            yield data
