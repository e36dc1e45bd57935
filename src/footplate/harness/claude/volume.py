"""Bounds what Claude Code may write down in one turn: the worker holds it in memory until it is in the log."""

from typing import Final

import orjson

from footplate.domain.errors import Temporary
from footplate.domain.json import JsonObject

MOST_LINES: Final = 100_000
MOST_BYTES: Final = 512 << 20
FLOOD: Final = "Claude Code wrote more output than one turn may have, so the turn was stopped."


class Volume:
    """Of one turn."""

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0

    def add(self, line: JsonObject) -> None:
        """Raises `Temporary` for a line too many."""
        self._lines += 1
        self._bytes += _size(line)
        if self._lines > MOST_LINES or self._bytes > MOST_BYTES:
            raise Temporary(FLOOD)


def _size(line: JsonObject) -> int:
    try:
        return len(orjson.dumps(line))
    except orjson.JSONEncodeError:  # halves of characters, which a strict writer refuses
        return len(repr(line))
