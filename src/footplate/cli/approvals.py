"""`footplate approvals`, `approve`, `deny`: a person's word. What they need they import when they are called."""

from typing import Annotated

import typer

from footplate.cli import options

Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="Ids as `footplate approvals` has them.")]


def approvals(
    session: Annotated[str | None, typer.Option("--session", "-s", metavar="ID", help="Only of this session.")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the calls that wait for a person's word, in all sessions; who has waited longest comes first."""
    from footplate.cli import answering

    answering.list_approvals(session, as_json=as_json, profile=profile)


def approve(
    ids: Ids,
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="And allow calls like it for the session, such as 'Bash(npm run *)'."),
    ] = None,
    updated: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="Make the call with this input instead of the model's."),
    ] = None,
    edited: Annotated[
        bool, typer.Option("--edited", help="Use the input that another person wrote for the call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve without asking.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show pending calls in full and approve them, after a question at a terminal. Each runs at most once."""
    from footplate.cli import answering

    answering.approve(ids, rule=rule, updated=updated, edited=edited, ask=not yes, as_json=as_json, profile=profile)


def deny(
    ids: Ids,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the model is told.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Deny calls that wait. They have no effect, and the model is told."""
    from footplate.cli import answering

    answering.deny(ids, message=message, as_json=as_json, profile=profile)
