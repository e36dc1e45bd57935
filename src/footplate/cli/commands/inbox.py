"""Defines `footplate inbox`, `pin` and `unpin`. Each command imports its implementation only when it runs, so that
every command starts quickly.
"""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

inbox = typer.Typer(
    help="List what waits for you: calls, questions, failures, conflicts.", no_args_is_help=True, cls=GroupedHelp
)


class View(StrEnum):
    NEEDS_YOU = "needs_you"
    MINE = "mine"
    SNOOZED = "snoozed"
    ALL = "all"


class Kind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"
    FAILURE = "failure"
    MERGE_CONFLICT = "merge_conflict"


Items = Annotated[list[str], typer.Argument(metavar="ID…", help="IDs of items, from `footplate inbox ls`.")]


@inbox.callback()
def group() -> None:
    """List what waits for you: calls, questions, failures, conflicts."""


@inbox.command("ls")
def list_items(
    view: Annotated[
        View,
        typer.Option(
            help="needs_you (assigned to you or to nobody), mine (assigned to you), snoozed, or all (also what is "
            "assigned to others)."
        ),
    ] = View.NEEDS_YOU,
    kind: Annotated[
        Kind | None, typer.Option(help="Only approval, question, failure or merge_conflict.  [default: all]")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="ID|NAME", help="Only sessions with this project.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List what waits for a person in all sessions, oldest first."""
    from footplate.cli.actions import inbox as actions

    actions.list_items(view.value, kind=kind and kind.value, project=project, as_json=as_json, profile=profile)


@inbox.command()
def assign(
    ids: Items,
    to: Annotated[str | None, typer.Option("--to", metavar="MEMBER", help="ID or name of the member.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the assignment.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Assign items to a member, who must be able to see their sessions."""
    from footplate.cli.actions import inbox as actions

    if (to is None) is not clear:
        raise typer.BadParameter("Name a member with --to, or use --clear.")
    actions.assign(ids, to, as_json=as_json, profile=profile)


@inbox.command()
def snooze(
    ids: Items,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="30m, 2h, 3d, or a time such as 2026-11-20T08:00."),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Show the items again now.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Hide items from everyone until a time."""
    from footplate.cli.actions import inbox as actions

    if (until is None) is not off:
        raise typer.BadParameter("Give a time with --until, or use --off.")
    actions.snooze(ids, until, as_json=as_json, profile=profile)


@inbox.command()
def dismiss(ids: Items, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Dismiss failures and merge conflicts for everyone. They come back if the session fails again."""
    from footplate.cli.actions import inbox as actions

    actions.dismiss(ids, as_json=as_json, profile=profile)


def pin(sessions: options.ManySessions, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Pin sessions for yourself. `footplate ls --pinned` lists them."""
    from footplate.cli.actions import inbox as actions

    actions.pin(sessions, is_pinned=True, as_json=as_json, profile=profile)


def unpin(sessions: options.ManySessions, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Unpin sessions."""
    from footplate.cli.actions import inbox as actions

    actions.pin(sessions, is_pinned=False, as_json=as_json, profile=profile)
