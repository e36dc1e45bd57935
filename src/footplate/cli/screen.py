"""Writes streamed text to stdout and lines to stderr, with a live status line at the bottom of a terminal.

The status line shows the current activity and its duration. It is drawn only on a terminal and erased before any other
output. A pipe from stdout receives only the agent's text.
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
"""Seconds. Shorter activities get no status line."""


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
        """The last word of the text, which may be incomplete. Only a complete word can be escaped."""
        self._drawn = False
        self._in_text = False
        self._said_anything = False

    def say(self, text: str) -> None:
        """Adds to the streamed text. It is escaped, and wrapped on a terminal."""
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
        """Prints a line. With `fitted`, it is already shortened to the terminal's width and is not wrapped."""
        self.end_text()
        self._clear()
        self._err.print(markup, soft_wrap=fitted)

    def block(self, head: str, text: str) -> None:
        """Prints untrusted text after `head`, in the layout of a field in `call_view`."""
        self.end_text()
        self._clear()
        room = max(_LEAST_ROOM, self._err.width - len(head))
        for number, line in enumerate(show_block(text).split("\n")):
            for place, part in enumerate(fold(line, room)):
                sign = "\\" if place else "|" if number else head
                output.print_exactly(self._err, Text(f"{sign:<{len(head)}}{part}", style="bold"))

    def gap(self) -> None:
        """Prints an empty line, on a terminal only."""
        if self._err.is_terminal:
            self.line("")

    def doing(self, text: str | None, about: str = "") -> None:
        """Sets the text of the status line, or removes it with None. `about` may be untrusted."""
        self._clear()
        self._doing = None if text is None else (text, about, monotonic())

    def tick(self) -> None:
        """Draws the status line. Called a few times per second."""
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
        """Escapes untrusted text and shortens it to the width that `taken` columns leave. A file gets the full text."""
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
