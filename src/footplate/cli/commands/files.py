"""Defines `footplate files`, which manages uploaded files. Each command imports its implementation only when it runs,
so that every command starts quickly.
"""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

files = typer.Typer(help="Manage uploaded files and the outputs of sessions.", no_args_is_help=True, cls=GroupedHelp)

FileId = Annotated[str, typer.Argument(metavar="FILE", help="ID of a file.")]


@files.command("ls")
def list_files(
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only the outputs of this session.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List files, newest first."""
    from footplate.cli.actions import files as actions

    actions.list_files(session, as_json=as_json, profile=profile)


@files.command("pull")
def pull(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="ID of a session, its start, or `last`.")],
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to write the files. Default: the current directory.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Download the outputs of a session: the files that its agent has left in /mnt/session/outputs."""
    from footplate.cli.actions import files as actions

    actions.pull(session, directory or Path(), force=force, as_json=as_json, profile=profile)


@files.command("upload")
def upload(
    path: Annotated[Path, typer.Argument(metavar="PATH", exists=True, dir_okay=False, help="A local file.")],
    expires: Annotated[
        int | None, typer.Option(min=3600, max=7_776_000, metavar="SECONDS", help="Delete the file after this time.")
    ] = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Upload a file and print its ID. By default, the whole organisation can see it."""
    from footplate.cli.actions import files as actions

    visibility = options.choose_visibility(visibility, team)
    actions.upload(path, expires=expires, visibility=visibility, team=team, as_json=as_json, profile=profile)


@files.command("get")
def get(file: FileId, profile: options.Profile = None) -> None:
    """Write the content of a file to stdout."""
    from footplate.cli.actions import files as actions

    actions.get(file, profile=profile)


@files.command("rm")
def remove(file: FileId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Delete a file. Copies that sessions received stay until those sessions are deleted."""
    from footplate.cli.actions import files as actions

    actions.remove(file, as_json=as_json, profile=profile)
