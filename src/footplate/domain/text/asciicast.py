"""Records what a terminal shows, in asciicast format (version 2): a header, and a line for each piece of output.

The keys of people are not recorded, because a password is typed without being shown.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Final

RECORDINGS_FOLDER: Final = "recordings"
"""The folder of a session's recordings in the object store."""
MEDIA_TYPE: Final = "application/x-asciicast"
MAX_RECORDED_BYTES: Final = 8 << 20
"""Bytes of a recording. Later output is not recorded."""


class AsciicastRecording:
    """A `FullOutput` that grows while the terminal is open."""

    def __init__(self, *, columns: int, rows: int, started_at: int, max_bytes: int = MAX_RECORDED_BYTES) -> None:
        """`started_at`: seconds since 1970."""
        header = {"version": 2, "width": columns, "height": rows, "timestamp": started_at}
        self._lines = bytearray(json.dumps(header).encode() + b"\n")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._max_bytes = max_bytes
        self._is_full = False

    @property
    def size(self) -> int:
        return len(self._lines)

    def pieces(self) -> Iterator[bytes]:
        yield bytes(self._lines)

    def add_output(self, seconds: float, data: bytes) -> None:
        """`seconds`: since the start. A character may be divided between two pieces."""
        if text := self._decoder.decode(data):
            self._add(seconds, "o", text)

    def add_size(self, seconds: float, columns: int, rows: int) -> None:
        self._add(seconds, "r", f"{columns}x{rows}")

    def _add(self, seconds: float, kind: str, text: str) -> None:
        line = json.dumps([round(seconds, 3), kind, text]).encode() + b"\n"
        if self._is_full or len(self._lines) + len(line) > self._max_bytes:
            if not self._is_full:
                self._lines += json.dumps([round(seconds, 3), "m", "The recording is full."]).encode() + b"\n"
            self._is_full = True
            return
        self._lines += line


def recording_name(recording_id: str) -> str:
    """Return where the recording is in the session's folder."""
    return f"{RECORDINGS_FOLDER}/{recording_id}.cast"
