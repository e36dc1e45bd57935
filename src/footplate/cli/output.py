"""What every command shares: two consoles, exit codes, and how an error is shown to a person."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from footplate.domain.errors import FootplateError

T = TypeVar("T")


class Exit(IntEnum):
    """0 is success; 2 is typer's own for a command line that it cannot read."""

    FAILED = 1


def out() -> Console:
    """For results. Rich honours NO_COLOR and plain pipes by itself."""
    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    """For everything that is not the result, so that a pipe gets the result alone."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def run(work: Coroutine[Any, Any, T], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run to the end; an error that a person can act on is shown as text, any other with its trace."""
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
    console = err()
    console.print(f"[bold red]{escape(error.message)}[/]")
    if error.help_text:
        console.print(escape(error.help_text))
