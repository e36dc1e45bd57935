"""The command that shows what a session changed. What it needs it imports when it is called."""

from typing import Annotated

import typer

from footplate.cli import options

_EVENT = "Id or position of an event"


def diff(
    session: options.OneSession = "last",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="ID", help="Only what this turn changed: `show` has ids, `last` is the newest."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="EVENT",
            help=f"{_EVENT}: from the files as they were there; `footplate logs --json` has ids.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="EVENT", help=f"{_EVENT}: to the files there.  [default: now]")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", "-p", metavar="ID", help="Only of this project.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="A line for each file instead of the patch.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Print what a session changed of its files, as a patch that `git apply` takes: in all, unless something is said.

    With several projects, the patch of each comes after the other: choose one to apply it.
    """
    from footplate.cli import comparing

    if turn and (since or until):
        raise typer.BadParameter("--turn says both: it goes without --from and --to.")
    wanted = comparing.Wanted(session=session, turn=turn, since=since, until=until, project=project)
    comparing.diff(wanted, stat=stat, as_json=as_json, profile=profile)
