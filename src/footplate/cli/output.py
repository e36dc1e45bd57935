"""The only module that writes to the terminal: every command's results, messages, questions and machine formats.

Text from outside is escaped (`domain/visible_text.py`) wherever a person may read it. Machine formats stay exact: JSON
writes such characters as their number, which is the same JSON, and bytes are escaped only on a terminal.

Imports nothing heavy: a shell's completion waits for it.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from footplate.domain.visible_text import neutralise, show_line, show_prose

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from rich.console import Console
    from rich.text import Text

    from footplate.domain.errors import FootplateError

T = TypeVar("T")
_WHOLE_LINE: Final = 1_000_000
_DELETE: Final = 0x7F
_MARKUP: Final = re.compile(r"(?<!\\)(?:(\\*+)(?:(\[[a-z#/@][^\[\]]*\])|(\[))|(\\++)\Z)")
_TAG_STARTS: Final = "abcdefghijklmnopqrstuvwxyz#/@"
_ERASE_LINE: Final = "\r\x1b[2K"


class Exit(IntEnum):
    """0 is success; 2 is typer's own for a command line that it cannot read. `docs/cli.md` has the list."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NEEDS_ACTION = 3
    TIMED_OUT = 4
    INTERRUPTED = 5
    LIMIT_REACHED = 6
    UNREACHABLE = 7
    LEFT = 130


def out() -> Console:
    """For results. Rich honours NO_COLOR and plain pipes by itself."""
    return _console(stderr=False)


def err() -> Console:
    """For everything that is not the result, so that a pipe gets the result alone."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """A terminal gets lines that are broken between words; a pipe gets whole lines, however long."""
    from footplate.cli.safe_console import SafeConsole

    console = SafeConsole(stderr=stderr, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _WHOLE_LINE
    return console


def quote(text: str) -> str:
    """Text from outside as part of a line of markup."""
    return escape_shown(show_line(text))


def escape_shown(text: str) -> str:
    """Shown text, as part of a line of markup.

    Rich's own `escape` loses backslashes before a bracket and at the end, and lets a bracket here and one in the next
    text make a tag, which hides what is between them.
    """
    return _MARKUP.sub(_escape_bracket, text)


def _escape_bracket(found: re.Match[str]) -> str:
    backslashes, tag, _, last = found.groups()
    if last:
        return f"<U+005C*{len(last)}>"
    if tag:
        return f"{backslashes}{backslashes}\\{tag}"
    if not backslashes or not _may_begin_tag(found):
        return f"{backslashes}\\["
    return f"<U+005C*{len(backslashes)}>\\["


def _may_begin_tag(found: re.Match[str]) -> bool:
    return found.end() == len(found.string) or found.string[found.end()] in _TAG_STARTS


def print_exactly(console: Console, text: str | Text) -> None:
    """One line that is laid out already: nothing is wrapped, trimmed or read as markup."""
    console.print(text, soft_wrap=True, markup=False)


def write_streamed(console: Console, text: str) -> None:
    """Part of a line, at once."""
    console.file.write(neutralise(text))
    console.file.flush()


def erase_line(console: Console) -> None:
    console.file.write(_ERASE_LINE)
    console.file.flush()


def print_result(text: str = "") -> None:
    """A line of the result: an id, a path, a value."""
    sys.stdout.write(f"{show_prose(text)}\n")


def print_machine_text(text: str) -> None:
    """A line for a program, such as a shell that evaluates it. The caller knows every character of it."""
    sys.stdout.write(f"{text}\n")


def print_json(value: Any) -> None:
    sys.stdout.write(f"{_dump(value, indent=2)}\n")


def print_json_line(value: Any) -> None:
    sys.stdout.write(f"{_dump(value)}\n")
    sys.stdout.flush()


def _dump(value: Any, indent: int | None = None) -> str:
    """JSON in which no character steers a terminal: those that would are written as their number."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char in "\n " or neutralise(char) == char else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > _DELETE else f"\\u{ord(char):04x}"


class ContentWriter:
    """Writes bytes of a file or a patch to stdout: exactly to a pipe, escaped to a terminal."""

    def __init__(self) -> None:
        self._escaped = sys.stdout.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._open_line = ""

    def write(self, piece: bytes) -> bool:
        """False: the reader has gone, as behind `| head`."""
        if not self._escaped:
            return self._send(piece)
        *lines, self._open_line = (self._open_line + self._decoder.decode(piece)).split("\n")
        return self._send("".join(f"{show_prose(line)}\n" for line in lines).encode("utf-8", "replace"))

    def finish(self) -> None:
        if self._open_line:
            self._send(show_prose(self._open_line).encode("utf-8", "replace"))

    def _send(self, piece: bytes) -> bool:
        try:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return False
        return True


def confirm(question: str) -> None:
    """Ask at the terminal; raises `typer.Abort` unless the answer is yes."""
    typer.confirm(show_line(question), abort=True, err=True)


def prompt_value(name: str, *, hidden: bool) -> str:
    return str(typer.prompt(show_line(name), hide_input=hidden))


def run(work: Coroutine[Any, Any, T], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run to the end; an error that a person can act on is shown as text, any other with its trace."""
    import asyncio

    from footplate.domain.errors import FootplateError

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work)
    except FootplateError as error:
        show(error)
        raise typer.Exit(Exit.FAILED) from None


def serve(work: Coroutine[Any, Any, None]) -> None:
    """Run a server: on uvloop, which needs less processor time for the same work."""
    import uvloop

    run(work, loop_factory=uvloop.new_event_loop)


def show(error: FootplateError) -> None:
    complain(error.message, error.help_text)


def complain(message: str, help_text: str = "") -> None:
    from rich.markup import escape

    console = err()
    console.print(f"[bold red]{escape(show_prose(message))}[/]")
    if help_text:
        console.print(escape(show_prose(help_text)))


def print_usage_error(text: str) -> None:
    """Text that typer made, wrapped already."""
    sys.stderr.write(show_prose(text))
