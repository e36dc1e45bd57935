"""Wraps streamed text between words at the terminal's width."""

import re
from typing import Final

_PIECES: Final = re.compile(r"\n|[^\S\n]+|\S+")
_FENCE: Final = "```"


class LineWrapper:
    """Holds back each word until it is complete. Code between fences is not wrapped."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._spaces = ""
        self._pending_text = ""
        self._fenced = False

    def wrap(self, text: str) -> str:
        return "".join(self._wrap_piece(piece) for piece in _PIECES.findall(text))

    def flush(self) -> str:
        """Returns the remaining text, with a newline if a line is open."""
        rest = self._flush_pending()
        self._spaces = ""
        if self._column:
            rest += "\n"
            self._column = 0
        self._fenced = False
        return rest

    def _wrap_piece(self, piece: str) -> str:
        if not piece.isspace():
            self._pending_text += piece
            return ""
        output = self._flush_pending()
        if piece == "\n":
            self._column, self._spaces = 0, ""
            return output + piece
        self._spaces += piece.expandtabs(4)
        return output

    def _flush_pending(self) -> str:
        from rich.cells import cell_len

        text, self._pending_text = self._pending_text, ""
        if not text:
            return ""
        if self._column == 0 and text.startswith(_FENCE):
            self._fenced = not self._fenced
        spaces, self._spaces = self._spaces, ""
        length = cell_len(text)
        if self._column and not self._fenced and self._column + len(spaces) + length > self._width:
            self._column = length
            return f"\n{text}"
        self._column += len(spaces) + length
        return spaces + text
