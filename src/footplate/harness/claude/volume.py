"""Limits the size of the transcript that Claude Code may write in one turn, because the worker holds it in memory."""

from typing import Final

import orjson

from footplate.domain.errors import Temporary
from footplate.domain.json import JsonObject

MOST_LINES: Final = 100_000
MOST_BYTES: Final = 512 << 20
FLOOD: Final = "Claude Code wrote more output than a turn may have. The turn was stopped."


class Volume:
    """The size of one turn's transcript so far."""

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0

    def add(self, line: JsonObject) -> None:
        """Counts a line. Raises `Temporary` if the limit is exceeded."""
        self._lines += 1
        self._bytes += _size(line)
        if self._lines > MOST_LINES or self._bytes > MOST_BYTES:
            raise Temporary(FLOOD)


def _size(line: JsonObject) -> int:
    try:
        return len(orjson.dumps(line))
    except orjson.JSONEncodeError:  # unpaired surrogates, which orjson rejects
        return len(repr(line))
