"""Limits the size of the transcript that Claude Code may write in one turn, because the worker keeps it in memory."""

from typing import Final

import orjson

from footplate.domain.errors import Temporary
from footplate.domain.json import JsonObject

MAX_LINES: Final = 100_000
MAX_BYTES: Final = 512 << 20
LIMIT_EXCEEDED: Final = "The turn was stopped because Claude Code wrote more output than the limit allows."


class OutputLimit:
    """The size of one turn's transcript so far."""

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0

    def count_line(self, line: JsonObject) -> None:
        """Counts a line. Raises `Temporary` if the limit is exceeded."""
        self._lines += 1
        self._bytes += _line_size(line)
        if self._lines > MAX_LINES or self._bytes > MAX_BYTES:
            raise Temporary(LIMIT_EXCEEDED)


def _line_size(line: JsonObject) -> int:
    try:
        return len(orjson.dumps(line))
    except orjson.JSONEncodeError:  # unpaired surrogates, which orjson rejects
        return len(repr(line))
