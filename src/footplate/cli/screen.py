"""Two outputs that may be one terminal: streamed text on stdout, lines on stderr, and one live line at the bottom.

The live line says what is going on and for how long; it is drawn on a terminal only, and gone before anything else is
written. Whoever pipes stdout gets the agent's words and nothing else.
"""

import os
from time import monotonic
from typing import Final

from rich.text import Text

from footplate.cli import output
from footplate.cli.wrapping import Wrapped
from footplate.domain.visible_text import fold, show_block, show_line, show_prose

_LEAST_ROOM: Final = 24
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
        self._doing: tuple[str, str, float] | None = None
        self._word = ""
        """The last word of the text, which may go on: only a whole word can be escaped."""
        self._drawn = False
        self._in_text = False
        self._said_anything = False

    def say(self, text: str) -> None:
        """Add to the text that is being streamed. It is escaped, and wrapped on a terminal."""
        if not text:
            return
        self._clear()
        gap = "\n" if self._said_anything and not self._in_text else ""
        self._said_anything = self._in_text = True
        text = self._word + text
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        self._word = text[end:]
        self._write(gap + self._wrap(text[:end]))

    def end_text(self) -> None:
        if self._in_text:
            self._in_text = False
            word, self._word = self._word, ""
            self._write(self._wrap(word) + ("\n" if self._wrapped is None else self._wrapped.end()))

    def line(self, markup: str, *, fitted: bool = False) -> None:
        """`fitted`: it was shortened to the terminal's width, and is not wrapped."""
        self.end_text()
        self._clear()
        self._err.print(markup, soft_wrap=fitted)

    def block(self, head: str, text: str) -> None:
        """Text from outside behind `head`, laid out as `call_view` lays out a field."""
        self.end_text()
        self._clear()
        room = max(_LEAST_ROOM, self._err.width - len(head))
        for number, line in enumerate(show_block(text).split("\n")):
            for place, part in enumerate(fold(line, room)):
                sign = "\\" if place else "|" if number else head
                output.print_exactly(self._err, Text(f"{sign:<{len(head)}}{part}", style="bold"))

    def gap(self) -> None:
        """An empty line, for people only."""
        if self._err.is_terminal:
            self.line("")

    def doing(self, text: str | None, about: str = "") -> None:
        """What the live line says from now on; None for nothing. `about` may be from outside."""
        self._clear()
        self._doing = None if text is None else (text, about, monotonic())

    def tick(self) -> None:
        """Draw the live line; called a few times a second."""
        if not self.is_live or self._doing is None or self._in_text:
            return
        text, about, since = self._doing
        passed = monotonic() - since
        if passed >= _SHOWN_AFTER:
            self._clear()
            shown = output.escape_shown(self.fit(about, len(text) + 12)) if about else ""
            self._err.print(f"[dim]{text}{shown} … {int(passed)}s[/]", end="", soft_wrap=True)
            self._err.file.flush()
            self._drawn = True

    def fit(self, text: str, taken: int) -> str:
        """Escape text from outside, and shorten it to the room beside `taken` columns; a file gets all of it."""
        return show_line(text, max(_LEAST_ROOM, self._err.width - taken) if self._err.is_terminal else None)

    def _write(self, text: str) -> None:
        output.write_streamed(self._out, text)

    def _wrap(self, text: str) -> str:
        shown = show_prose(text)
        return shown if self._wrapped is None else self._wrapped.feed(shown)

    def _clear(self) -> None:
        if self._drawn:
            output.erase_line(self._err)
            self._drawn = False
