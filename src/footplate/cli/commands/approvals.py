"""Defines `footplate approvals`, `approve` and `deny`. Each command imports its implementation only when it runs, so
that every command starts quickly.
"""

from typing import Annotated

import typer

from footplate.cli import options

Ids = Annotated[
    list[str], typer.Argument(metavar="ID…", help="IDs of pending calls, as listed by `footplate approvals`.")
]


def approvals(
    session: Annotated[
        str | None, typer.Option("--session", "-s", metavar="ID", help="List only the calls of this session.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the calls that need approval in all sessions, oldest first."""
    from footplate.cli.actions import approvals as actions

    actions.list_approvals(session, as_json=as_json, profile=profile)


def approve(
    ids: Ids,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="Also allow calls that match this rule in this session, such as 'Bash(npm run *)'."
        ),
    ] = None,
    updated: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="Run the call with this input instead of the model's input."),
    ] = None,
    edited: Annotated[
        bool, typer.Option("--edited", help="Approve the call with the input that another person edited.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve without asking for confirmation.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show pending calls in full, ask before each, and approve them. Needs --yes without a terminal. A call runs at
    most once.
    """
    from footplate.cli.actions import approvals as actions

    actions.approve(ids, rule=rule, updated=updated, edited=edited, confirm=not yes, as_json=as_json, profile=profile)


def deny(
    ids: Ids,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Reason, which is sent to the model.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Deny pending calls. They do not run, and the model is notified."""
    from footplate.cli.actions import approvals as actions

    actions.deny(ids, message=message, as_json=as_json, profile=profile)
