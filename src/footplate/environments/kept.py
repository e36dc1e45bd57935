"""What is kept of one stream of a command's output: a little in memory, more in a file, the rest is counted.

A worker runs many turns; none of them may take its memory by printing. So memory holds the beginning and the end alone.
When that is not all of it, a file without a name gets the whole, up to a limit: beginning and end again, half each, the
second as a ring.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import Final

SPOOLED: Final = 10 * 1024 * 1024
"""In a file, of one stream of one command."""
_PIECE: Final = 1 << 20


class Kept:
    def __init__(self, limit: int, *, spooled: int = SPOOLED) -> None:
        """`limit`: bytes in memory."""
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._spool_half = max(spooled // 2, limit)
        self._file = -1
        self._closed = False
        self.size = 0
        """Of all that was printed."""

    def __del__(self) -> None:
        self.close()

    @property
    def truncated(self) -> bool:
        return self.size > len(self._head) + min(len(self._tail), self._half)

    @property
    def spooled(self) -> int:
        """How much of it can be read by `pieces`; 0 if memory has it all."""
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
        if len(self._tail) > 2 * self._half:  # trimming seldom keeps adding cheap
            del self._tail[: -self._half]

    def value(self) -> bytes:
        """Beginning and end, with a line between them that says how much is left out."""
        tail = bytes(self._tail[-self._half :])
        left_out = self.size - len(self._head) - len(tail)
        if not left_out:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[... {left_out} bytes left out ...]\n".encode() + tail

    def pieces(self) -> Iterator[bytes]:
        """All that the file has, in order. Blocking."""
        half = self._spool_half
        yield from self._read(0, min(self.size, half))
        if self.size > 2 * half:
            yield f"\n[... {self.size - 2 * half} bytes left out ...]\n".encode()
            begin = (self.size - half) % half
            yield from self._read(half + begin, 2 * half)
            yield from self._read(half, half + begin)
        elif self.size > half:
            yield from self._read(half, self.size)

    def close(self) -> None:
        """Keep what memory has."""
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
        """A worker whose disk is full goes on with what memory keeps."""
        view, at = memoryview(data), self.size
        half = self._spool_half
        while view:
            place = at if at < half else half + (at - half) % half
            room = (half if at < half else 2 * half) - place
            try:
                written = os.pwrite(self._file, view[:room], place)
            except OSError:
                self.close()
                return
            view, at = view[written:], at + written

    def _read(self, start: int, end: int) -> Iterator[bytes]:
        while start < end and (data := os.pread(self._file, min(_PIECE, end - start), start)):
            start += len(data)
            yield data
