"""What every command shares: two consoles, exit codes, and how an error is shown to a person.

Imports nothing heavy: a shell's completion waits for it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from rich.console import Console

    from footplate.domain.errors import FootplateError

T = TypeVar("T")
_WHOLE_LINE: Final = 1_000_000


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
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _WHOLE_LINE
    return console


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
    console.print(f"[bold red]{escape(message)}[/]")
    if help_text:
        console.print(escape(help_text))
