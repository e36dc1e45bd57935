"""The commands by which a session's work leaves it. What they need they import when they are called."""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options

Project = Annotated[
    str | None, typer.Option("--project", "-p", metavar="ID", help="Which project, where it works on several.")
]
Directory = Annotated[
    Path,
    typer.Option(
        "--directory", "-C", metavar="DIR", help="A checkout of yours.  [default: where you are]", show_default=False
    ),
]
Message = Annotated[
    str | None,
    typer.Option("--message", "-m", metavar="TEXT", help="Of the commit with what the agent left uncommitted."),
]
Wait = Annotated[
    int, typer.Option("--wait", min=0, max=300, metavar="SECONDS", help="For others who write to the same branch.")
]


def apply(
    session: options.OneSession = "last",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="ID", help="Only what this turn changed: `show` has ids, `last` is the newest."),
    ] = None,
    project: Project = None,
    directory: Directory = Path(),
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Bring what a session changed into the files of your checkout: all of it, or nothing and the reason why not.

    Nothing is committed or staged. What you changed yourself stays, where both go together.
    """
    from footplate.cli import departing

    wanted = departing.Wanted(session=session, turn=turn, project=project)
    departing.apply(wanted, directory, as_json=as_json, profile=profile)


def merge(
    session: options.OneSession = "last",
    into: Annotated[
        str | None, typer.Option("--into", metavar="BRANCH", help="[default: the branch that it began with]")
    ] = None,
    message: Message = None,
    project: Project = None,
    wait: Wait = 300,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Merge a session's work into a branch of its project, in the project's own repository, on the server.

    A branch that somebody has checked out there is left alone: see `apply` and `export`.
    """
    from footplate.cli import departing

    wanted = departing.Wanted(session=session, project=project)
    departing.merge(wanted, into, message=message, wait=wait, as_json=as_json, profile=profile)


def push(
    session: options.OneSession = "last",
    branch: Annotated[
        str | None, typer.Option("--branch", "-b", metavar="NAME", help="[default: footplate/ and the session's id]")
    ] = None,
    message: Message = None,
    project: Project = None,
    wait: Wait = 300,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Push a session's work as a branch of its own to its project's repository, from the server."""
    from footplate.cli import departing

    wanted = departing.Wanted(session=session, project=project)
    departing.push(wanted, branch, message=message, wait=wait, as_json=as_json, profile=profile)


def export(
    session: options.OneSession = "last",
    branch: Annotated[
        str | None, typer.Option("--branch", "-b", metavar="NAME", help="Make this branch in your repository.")
    ] = None,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Write the patch to a file, or with `-` to stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also over a branch that has other commits.")] = False,
    project: Project = None,
    directory: Directory = Path(),
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Take a session's work: as a branch of your own repository, with the agent's own commits, or as a patch."""
    from footplate.cli import departing

    if (branch is None) == (patch is None):
        raise typer.BadParameter("Say --branch NAME or --patch FILE, one of the two.")
    wanted = departing.Wanted(session=session, project=project)
    if patch == Path("-"):
        if as_json:
            raise typer.BadParameter("--patch - and --json both want standard output: name a file.")
        departing.print_patch(wanted, profile=profile)
    elif patch is not None:
        departing.export_patch(wanted, patch, as_json=as_json, profile=profile)
    elif branch is not None:
        departing.export_branch(wanted, branch, directory, force=force, as_json=as_json, profile=profile)
