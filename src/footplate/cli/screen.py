"""Two outputs that may be one terminal: streamed text on stdout, lines on stderr, and one live line at the bottom.

The live line says what is going on and for how long; it is drawn on a terminal only, and gone before anything else is
written. Whoever pipes stdout gets the agent's words and nothing else.
"""

import os
from time import monotonic
from typing import Final

from rich.markup import escape

from footplate.cli import output, wording
from footplate.cli.wrapping import Wrapped

_CLEAR: Final = "\r\x1b[2K"
_SHOWN_AFTER: Final = 0.5
"""What is over sooner needs no line while it lasts."""


class Screen:
    def __init__(self, *, lines_on_stdout: bool = False) -> None:
        self._out = output.out()
        self._err = self._out if lines_on_stdout else output.err()
        self.is_live = (
            self._err.is_terminal and not self._err.legacy_windows and os.environ.get("TERM", "dumb") != "dumb"
        )
        self._wrapped = Wrapped(self._out.width) if self._out.is_terminal else None
        self._doing: tuple[str, float] | None = None
        self._drawn = False
        self._in_text = False
        self._said_anything = False

    def say(self, text: str) -> None:
        """Add to the text that is being streamed. A terminal gets it wrapped, and free of control codes."""
        if not text:
            return
        self._clear()
        gap = "\n" if self._said_anything and not self._in_text else ""
        self._said_anything = self._in_text = True
        self._write(gap + (text if self._wrapped is None else self._wrapped.feed(wording.safe(text))))

    def end_text(self) -> None:
        if self._in_text:
            self._in_text = False
            self._write("\n" if self._wrapped is None else self._wrapped.end())

    def line(self, markup: str) -> None:
        self.end_text()
        self._clear()
        self._err.print(markup)

    def gap(self) -> None:
        """An empty line, for people only."""
        if self._err.is_terminal:
            self.line("")

    def doing(self, text: str | None) -> None:
        """What the live line says from now on; None for nothing."""
        self._clear()
        self._doing = None if text is None else (text, monotonic())

    def tick(self) -> None:
        """Draw the live line; called a few times a second."""
        if not self.is_live or self._doing is None or self._in_text:
            return
        text, since = self._doing
        passed = monotonic() - since
        if passed >= _SHOWN_AFTER:
            self._clear()
            self._err.print(f"[dim]{escape(self.fit(text, 12))} … {int(passed)}s[/]", end="")
            self._err.file.flush()
            self._drawn = True

    def fit(self, text: str, taken: int) -> str:
        """Cut to what a terminal's line has room for beside `taken` columns; a file gets all of it."""
        room = max(16, self._err.width - taken)
        return text if not self._err.is_terminal or len(text) <= room else f"{text[: room - 1]}…"

    def _write(self, text: str) -> None:
        self._out.file.write(text)
        self._out.file.flush()

    def _clear(self) -> None:
        if self._drawn:
            self._err.file.write(_CLEAR)
            self._err.file.flush()
            self._drawn = False
