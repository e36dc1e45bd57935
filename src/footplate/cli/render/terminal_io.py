"""Functions through which commands write to the terminal: results, messages, prompts and machine-readable output.

Untrusted text is escaped before a person sees it (see `domain/text/visible_text.py`). JSON output uses JSON escape
sequences, so its values do not change. Raw bytes are escaped only if stdout is a terminal. The module imports nothing
heavy, so that commands start quickly.
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

from footplate.domain.text.visible_text import neutralise, show_line, show_prose

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from rich.console import Console
    from rich.progress import Progress
    from rich.segment import Segments
    from rich.table import Table
    from rich.text import Text

    from footplate.domain.errors import FootplateError

T = TypeVar("T")
_UNLIMITED_WIDTH: Final = 1_000_000
_DELETE: Final = 0x7F
_MARKUP: Final = re.compile(r"(?<!\\)(?:(\\*+)(?:(\[[a-z#/@][^\[\]]*\])|(\[))|(\\++)\Z)")
_TAG_STARTS: Final = "abcdefghijklmnopqrstuvwxyz#/@"
_ERASE_LINE: Final = "\r\x1b[2K"


class Exit(IntEnum):
    """Exit codes, as listed in `docs/cli.md`. Typer itself uses 2 for an invalid command line."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NEEDS_ACTION = 3
    TIMED_OUT = 4
    INTERRUPTED = 5
    LIMIT_REACHED = 6
    UNREACHABLE = 7
    DETACHED = 130


def out() -> Console:
    """Returns the console for results. Rich respects NO_COLOR and pipes."""
    return _console(stderr=False)


def err() -> Console:
    """Returns the console for everything but results, so that a pipe receives only the result."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Wraps lines between words on a terminal. A pipe receives whole lines of any length."""
    from footplate.cli.render.safe_console import SafeConsole

    console = SafeConsole(stderr=stderr, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _UNLIMITED_WIDTH
    return console


def create_progress_bar(console: Console) -> Progress:
    """Returns a progress bar, which only a terminal shows and which is erased at its end. Its description is text."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def is_terminal() -> bool:
    """Returns whether results go to a terminal."""
    return sys.stdout.isatty()


def quote(text: str) -> str:
    """Escapes untrusted text for use in a line of markup."""
    return escape_shown(show_line(text))


def escape_shown(text: str) -> str:
    """Escapes visible text for use in a line of markup.

    Rich's own `escape` drops backslashes before a bracket and at the end. It also lets a bracket here and one in the
    next text form a tag, which hides the text between them.
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


def print_exactly(console: Console, text: str | Text | Segments) -> None:
    """Prints one finished line: nothing is wrapped, trimmed or interpreted as markup."""
    console.print(text, soft_wrap=True, markup=False)


def write_streamed(console: Console, text: str) -> None:
    """Writes part of a line immediately."""
    console.file.write(neutralise(text))
    console.file.flush()


def erase_line(console: Console) -> None:
    console.file.write(_ERASE_LINE)
    console.file.flush()


def print_table(table: Table) -> None:
    """Prints a table. Rich fills each line up to the longest one, which a pipe does not need."""
    console = out()
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        sys.stdout.write(f"{line if console.is_terminal else line.rstrip()}\n")


def print_result(text: str = "") -> None:
    """Prints one line of the result, such as an id, a path or a value."""
    sys.stdout.write(f"{show_prose(text)}\n")


def print_note(text: str) -> None:
    """Prints a hint that is not part of the result. It contains no untrusted text."""
    err().print(text, markup=False)


def print_machine_text(text: str) -> None:
    """Prints a line for a program, such as a shell that evaluates it. The text must be trusted."""
    sys.stdout.write(f"{text}\n")


def print_json(value: Any) -> None:
    sys.stdout.write(f"{_dump(value, indent=2)}\n")


def print_json_line(value: Any) -> None:
    sys.stdout.write(f"{_dump(value)}\n")
    sys.stdout.flush()


def _dump(value: Any, indent: int | None = None) -> str:
    """Returns JSON without terminal control characters: they are written as escape sequences."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char in "\n " or neutralise(char) == char else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > _DELETE else f"\\u{ord(char):04x}"


class ContentWriter:
    """Writes the bytes of a file or a patch to stdout: unchanged to a pipe, escaped to a terminal."""

    def __init__(self) -> None:
        self._escaped = is_terminal()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._open_line = ""

    def write(self, piece: bytes) -> bool:
        """Returns False if the reader closed the pipe, as `| head` does."""
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
    """Asks the user at the terminal and raises `typer.Abort` unless the user confirms."""
    typer.confirm(show_line(question), abort=True, err=True)


def prompt_value(name: str, *, hidden: bool) -> str:
    return str(typer.prompt(show_line(name), hide_input=hidden))


def run_async(
    work: Coroutine[Any, Any, T], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Runs a coroutine. A `FootplateError` is shown as a message, any other error with its traceback."""
    import asyncio

    from footplate.domain.errors import FootplateError

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work)
    except FootplateError as error:
        print_footplate_error(error)
        raise typer.Exit(Exit.FAILED) from None


def run_server(work: Coroutine[Any, Any, None]) -> None:
    """Runs a server on uvloop, which needs less CPU time."""
    import uvloop

    run_async(work, loop_factory=uvloop.new_event_loop)


def print_footplate_error(error: FootplateError) -> None:
    print_error(error.message, error.help_text)


def print_error(message: str, help_text: str = "") -> None:
    from rich.markup import escape

    console = err()
    console.print(f"[bold red]{escape(show_prose(message))}[/]")
    if help_text:
        console.print(escape(show_prose(help_text)))


def print_usage_error(text: str) -> None:
    """Prints an error text of typer that is already wrapped."""
    sys.stderr.write(show_prose(text))
