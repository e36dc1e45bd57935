"""Writes the agent's streamed text to stdout and other lines to stderr, with a live status line at the bottom of the
terminal.

The status line shows the current activity and its duration. It is drawn only on a terminal and erased before any other
output. If stdout is a pipe, the pipe receives only the agent's text.
"""

import os
from time import monotonic
from typing import Final

from rich.text import Text

from footplate.cli.render import terminal_io
from footplate.cli.render.line_wrap import LineWrapper
from footplate.domain.text.visible_text import show_block, show_line, show_prose, wrap_line

_MIN_WIDTH: Final = 24
_STATUS_DELAY: Final = 0.5
"""Seconds. Shorter activities get no status line."""


class TerminalScreen:
    def __init__(self, *, lines_on_stdout: bool = False) -> None:
        self._out = terminal_io.out()
        self._err = self._out if lines_on_stdout else terminal_io.err()
        self.is_live = (
            self._err.is_terminal and not self._err.legacy_windows and os.environ.get("TERM", "dumb") != "dumb"
        )
        self._wrapper = LineWrapper(self._out.width) if self._out.is_terminal else None
        self._status: tuple[str, str, float] | None = None
        self._partial_text = ""
        """The last word of the text, which may be incomplete. Only a complete word can be escaped."""
        self._status_drawn = False
        self._in_text = False
        self._has_output = False

    def write_text(self, text: str) -> None:
        """Adds to the streamed text. It is escaped, and wrapped on a terminal."""
        if not text:
            return
        self._erase_status()
        gap = "\n" if self._has_output and not self._in_text else ""
        self._has_output = self._in_text = True
        text = self._partial_text + text
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        self._partial_text = text[end:]
        self._write(gap + self._wrap(text[:end]))

    def end_text(self) -> None:
        if self._in_text:
            self._in_text = False
            partial, self._partial_text = self._partial_text, ""
            self._write(self._wrap(partial) + ("\n" if self._wrapper is None else self._wrapper.flush()))

    def print_line(self, markup: str, *, fitted: bool = False) -> None:
        """Prints a line. With `fitted`, it is already shortened to the terminal's width and is not wrapped."""
        self.end_text()
        self._erase_status()
        self._err.print(markup, soft_wrap=fitted)

    def print_block(self, head: str, text: str) -> None:
        """Prints untrusted text after `head`, in the layout of a field in `tool_call_format`."""
        self.end_text()
        self._erase_status()
        width = max(_MIN_WIDTH, self._err.width - len(head))
        for number, line in enumerate(show_block(text).split("\n")):
            for part_number, part in enumerate(wrap_line(line, width)):
                sign = "\\" if part_number else "|" if number else head
                terminal_io.print_exactly(self._err, Text(f"{sign:<{len(head)}}{part}", style="bold"))

    def print_gap(self) -> None:
        """Prints an empty line, on a terminal only."""
        if self._err.is_terminal:
            self.print_line("")

    def set_status(self, text: str | None, about: str = "") -> None:
        """Sets the text of the status line, or removes it with None. `about` may be untrusted."""
        self._erase_status()
        self._status = None if text is None else (text, about, monotonic())

    def refresh_status(self) -> None:
        """Draws the status line. Called a few times per second."""
        if not self.is_live or self._status is None or self._in_text:
            return
        text, about, since = self._status
        passed = monotonic() - since
        if passed >= _STATUS_DELAY:
            self._erase_status()
            shown = terminal_io.escape_shown(self.fit(about, len(text) + 12)) if about else ""
            self._err.print(f"[dim]{text}{shown} … {int(passed)}s[/]", end="", soft_wrap=True)
            self._err.file.flush()
            self._status_drawn = True

    def fit(self, text: str, taken: int) -> str:
        """Escapes untrusted text and shortens it to the width that `taken` columns leave. A file gets the full text."""
        return show_line(text, max(_MIN_WIDTH, self._err.width - taken) if self._err.is_terminal else None)

    def _write(self, text: str) -> None:
        terminal_io.write_streamed(self._out, text)

    def _wrap(self, text: str) -> str:
        shown = show_prose(text)
        return shown if self._wrapper is None else self._wrapper.wrap(shown)

    def _erase_status(self) -> None:
        if self._status_drawn:
            terminal_io.erase_line(self._err)
            self._status_drawn = False
