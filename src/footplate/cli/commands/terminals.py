"""Defines `footplate terminals`: the recordings of the shells of people. Each command imports its implementation only
when it runs, so that every command starts quickly.
"""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

terminals = typer.Typer(help="List and save recordings of a session's terminal.", no_args_is_help=True, cls=GroupedHelp)


@terminals.command("ls")
def list_recordings(
    session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """List the recordings of a session, oldest first. A shell is recorded when it has been closed."""
    from footplate.cli.actions import terminals as actions

    actions.list_recordings(session, as_json=as_json, profile=profile)


@terminals.command("save")
def save(
    session: options.OneSession = "last",
    recording: Annotated[
        str | None, typer.Argument(metavar="[RECORDING]", help="ID of a recording.  [default: the newest]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it.  [default: RECORDING.cast]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Save a recording as an asciicast file, which `asciinema play` shows."""
    from footplate.cli.actions import terminals as actions

    actions.save_recording(session, recording, output, force=force, as_json=as_json, profile=profile)
