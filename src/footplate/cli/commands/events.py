"""Defines `footplate events`."""

from typing import Annotated

import typer

from footplate.cli import options


def events(
    types: Annotated[
        list[str] | None,
        typer.Option("--types", metavar="TYPE", help="Only changes of this event type. Can be given more than once."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", "-s", metavar="ID", help="Only changes of this session.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="ID", help="Only changes of sessions with this project.")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(
            "--after", min=0, metavar="POSITION", help="Resume after this position of the feed.  [default: now]"
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option("--wait", min=0.1, metavar="SECONDS", help="Stop when nothing changed for this long."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each change as one line of JSON.")] = False,
    profile: options.Profile = None,
) -> None:
    """Print the changes of all sessions that you can see, as they happen, until Ctrl-C.

    Changes are new, updated and deleted sessions, their status, errors, approvals and pending tool calls.
    """
    from footplate.cli.actions import events as actions

    wanted = actions.ChangeFilter(types=types or [], session=session, project_id=project)
    actions.follow_changes(wanted, after=after, wait=wait, as_json=as_json, profile=profile)
