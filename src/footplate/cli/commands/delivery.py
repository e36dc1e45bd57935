"""Defines the delivery commands: apply, merge, push and export. Each command imports its implementation only when it
runs, so that every command starts quickly.
"""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options

Project = Annotated[
    str | None,
    typer.Option("--project", "-p", metavar="ID", help="Project to use if the session works on several."),
]
Directory = Annotated[
    Path,
    typer.Option(
        "--directory", "-C", metavar="DIR", help="Your checkout.  [default: the current directory]", show_default=False
    ),
]
Message = Annotated[
    str | None,
    typer.Option("--message", "-m", metavar="TEXT", help="Commit message for uncommitted changes."),
]
Wait = Annotated[
    int,
    typer.Option(
        "--wait", min=0, max=300, metavar="SECONDS", help="Maximum time to wait for other writers of the branch."
    ),
]


def apply(
    session: options.OneSession = "last",
    turn: Annotated[
        str | None,
        typer.Option(
            "--turn", metavar="ID", help="Only the changes of this turn. `show` lists turn IDs; `last` is the newest."
        ),
    ] = None,
    project: Project = None,
    directory: Directory = Path(),
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Apply a session's changes to the files in your checkout: all changes, or none if there is a conflict.

    Nothing is committed or staged, and your own changes are kept. The default session is the last one that started from
    a commit of your checkout's repository.
    """
    from footplate.cli.actions import delivery

    wanted = delivery.DeliveryOptions(session=session, turn=turn, project=project)
    delivery.apply(wanted, directory, as_json=as_json, profile=profile)


def merge(
    session: options.OneSession = "last",
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="BRANCH",
            help="Target branch. A missing branch is created.  [default: the branch that the session started from]",
        ),
    ] = None,
    message: Message = None,
    project: Project = None,
    wait: Wait = 300,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Merge a session's changes into a branch of its project's repository, on the server.

    Fails if the branch is checked out in that repository. In this case, merge into a new branch with --into and run
    `git merge` in your checkout, or use `apply`.
    """
    from footplate.cli.actions import delivery

    wanted = delivery.DeliveryOptions(session=session, project=project)
    delivery.merge(wanted, into, message=message, wait=wait, as_json=as_json, profile=profile)


def push(
    session: options.OneSession = "last",
    branch: Annotated[
        str | None, typer.Option("--branch", "-b", metavar="NAME", help="Branch name.  [default: footplate/SESSION]")
    ] = None,
    message: Message = None,
    project: Project = None,
    wait: Wait = 300,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Push a session's changes as a new branch to its project's repository, from the server."""
    from footplate.cli.actions import delivery

    wanted = delivery.DeliveryOptions(session=session, project=project)
    delivery.push(wanted, branch, message=message, wait=wait, as_json=as_json, profile=profile)


def export(
    session: options.OneSession = "last",
    branch: Annotated[
        str | None, typer.Option("--branch", "-b", metavar="NAME", help="Create this branch in your repository.")
    ] = None,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Write the patch to a file, or to stdout with `-`.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a branch that has other commits.")] = False,
    project: Project = None,
    directory: Directory = Path(),
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Export a session's changes as a branch in your repository, with the agent's commits, or as a patch."""
    from footplate.cli.actions import delivery

    if (branch is None) == (patch is None):
        raise typer.BadParameter("Use exactly one of --branch NAME and --patch FILE.")
    wanted = delivery.DeliveryOptions(session=session, project=project)
    if patch == Path("-"):
        if as_json:
            raise typer.BadParameter("--patch - and --json both write to standard output. Write the patch to a file.")
        delivery.print_patch(wanted, profile=profile)
    elif patch is not None:
        delivery.export_patch(wanted, patch, as_json=as_json, profile=profile)
    elif branch is not None:
        delivery.export_branch(wanted, branch, directory, force=force, as_json=as_json, profile=profile)
