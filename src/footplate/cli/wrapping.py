"""Wraps streamed text between words at the terminal's width."""

import re
from typing import Final

_PIECES: Final = re.compile(r"\n|[^\S\n]+|\S+")
_FENCE: Final = "```"


class Wrapped:
    """Holds back each word until it is complete. Code between fences is not wrapped."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._spaces = ""
        self._word = ""
        self._fenced = False

    def feed(self, text: str) -> str:
        return "".join(self._piece(piece) for piece in _PIECES.findall(text))

    def end(self) -> str:
        """Returns the remaining text, with a newline if a line is open."""
        rest = self._give_word()
        self._spaces = ""
        if self._column:
            rest += "\n"
            self._column = 0
        self._fenced = False
        return rest

    def _piece(self, piece: str) -> str:
        if not piece.isspace():
            self._word += piece
            return ""
        given = self._give_word()
        if piece == "\n":
            self._column, self._spaces = 0, ""
            return given + piece
        self._spaces += piece.expandtabs(4)
        return given

    def _give_word(self) -> str:
        from rich.cells import cell_len

        word, self._word = self._word, ""
        if not word:
            return ""
        if self._column == 0 and word.startswith(_FENCE):
            self._fenced = not self._fenced
        spaces, self._spaces = self._spaces, ""
        length = cell_len(word)
        if self._column and not self._fenced and self._column + len(spaces) + length > self._width:
            self._column = length
            return f"\n{word}"
        self._column += len(spaces) + length
        return spaces + word
