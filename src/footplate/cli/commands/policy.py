"""Defines `footplate policy`, which shows and sets the organisation's rules, and evaluates rules for a given command or
for past tool calls.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp


class Layer(StrEnum):
    ORGANISATION = "organisation"
    PROJECT = "project"
    AGENT = "agent"
    SESSION = "session"


Rules = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="A file with rules, such as .claude/settings.json. May be repeated.  "
        "[default: .claude/settings.json and .claude/settings.local.json in the directory]",
    ),
]

app = typer.Typer(help="Manage and test the organisation's permission rules.", no_args_is_help=True, cls=GroupedHelp)


@app.callback()
def group() -> None:
    """Manage and test the organisation's permission rules."""


@app.command()
def show(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show the organisation's rules, hooks and approval settings."""
    from footplate.cli.actions.policy import organisation_policy

    organisation_policy.show_policy(as_json=as_json, profile=profile)


@app.command("set")
def set_policy(
    rules: Rules = None,
    none: Annotated[bool, typer.Option("--none", help="Remove all rules.")] = False,
    expires: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS", min=1, help="Time limit for an approval, after which it is decided automatically."
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Role that an API key needs to approve calls.")
    ] = None,
    two_people: Annotated[
        bool | None, typer.Option("--two-people/--one-person", help="Whether a second person must approve each call.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Replace the organisation's rules. Requires the role admin or policy_admin."""
    from footplate.cli.actions.policy import organisation_policy

    if none and rules:
        raise typer.BadParameter("cannot be combined with --rules", param_hint="--none")
    terms = {"expires_after_seconds": expires, "role": role, "two_people": two_people}
    changed = {name: value for name, value in terms.items() if value is not None}
    organisation_policy.update_policy(rules, changed, none=none, as_json=as_json, profile=profile)


@app.command()
def explain(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="A shell command as one argument.")],
    rules: Rules = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="The working tree.", show_default="this directory")
    ] = Path(),
    server: Annotated[
        bool, typer.Option("--server", help="Use the organisation's rules on the server instead of files.")
    ] = False,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Use all rules of this session. Implies --server.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Add the rules of this agent. Implies --server.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="Add the rules of this project. Implies --server.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show how a command is parsed and which rule decides each part. Needs a server only for its rules."""
    from footplate.cli.actions.policy import explain as explain_action

    if server or session or agent or project:
        if rules:
            raise typer.BadParameter(
                "--rules is for files, so it cannot be combined with --server, --session, --agent or --project."
            )
        scope = {"session_id": session, "agent_id": agent, "project_id": project}
        explain_action.explain_on_server(command, scope, as_json=as_json, profile=profile)
        return
    explain_action.explain(command, rules, directory, as_json=as_json)


@app.command()
def replay(
    rules: Rules = None,
    layer: Annotated[
        Layer,
        typer.Option(
            metavar="LAYER",
            help="The layer whose rules the proposed rules replace: organisation, project, agent or session.",
        ),
    ] = Layer.ORGANISATION,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only calls of this session.")] = None,
    project: Annotated[str | None, typer.Option(metavar="ID", help="Only calls of sessions on this project.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only calls since this time: 7d, 12h, or a timestamp.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of calls to evaluate, newest first.")
    ] = 10_000,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="Maximum number of changed calls to show.")] = 50,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show how proposed rules would have decided past calls. Nothing is stored or run."""
    from footplate.cli.actions.policy import replay as replay_action

    replay_action.replay(
        rules,
        layer=layer.value,
        session=session,
        project=project,
        since=since,
        limit=limit,
        max_shown=show,
        as_json=as_json,
        profile=profile,
    )
