"""Defines `footplate diff`. The command imports its implementation only when it runs, so that every command starts
quickly.
"""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options

_EVENT = "ID or position of an event"


class State(StrEnum):
    """The state of a change in git."""

    COMMITTED = "committed"
    STAGED = "staged"
    UNSTAGED = "unstaged"
    UNTRACKED = "untracked"


def diff(
    session: options.OneSession = "last",
    turn: Annotated[
        str | None,
        typer.Option(
            "--turn", metavar="ID", help="Only the changes of this turn. `show` lists turn IDs; `last` is the newest."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="EVENT",
            help=f"{_EVENT} to compare from. `footplate logs --json` shows event IDs.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="EVENT", help=f"{_EVENT} to compare to.  [default: now]"),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="ID", help="Only the changes in this project.")
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Print one line per file instead of the patch.")] = False,
    state: Annotated[
        State | None,
        typer.Option("--state", help="Only changes in this state in git, at the end of the compared range."),
    ] = None,
    no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Print directly to the terminal, not through $PAGER.")
    ] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Print the file changes of a session as a patch for `git apply`. Without options, prints all changes.

    On a terminal, the patch is coloured and shown in $PAGER, or in `less` if PAGER is not set.

    If the session works on several projects, their patches are printed one after the other. Use --project to apply one.
    """
    from footplate.cli.actions import diff as actions

    if turn and (since or until):
        raise typer.BadParameter("--turn cannot be combined with --from or --to.")
    wanted = actions.DiffOptions(session=session, turn=turn, since=since, until=until, project=project, state=state)
    actions.diff(wanted, stat=stat, uses_pager=not no_pager, as_json=as_json, profile=profile)
