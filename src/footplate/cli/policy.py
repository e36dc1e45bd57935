"""`footplate policy`: the organisation's rules; and rules tried on a command, or on what was done already."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.grouping import Grouped


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
        "[default: .claude/settings.json and .claude/settings.local.json of the directory]",
    ),
]

app = typer.Typer(help="Permission rules: the organisation's, and rules to try.", no_args_is_help=True, cls=Grouped)


@app.callback()
def group() -> None:
    """Permission rules: the organisation's, and rules to try."""


@app.command()
def show(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show the organisation's rules and hooks, and its terms for those who are asked."""
    from footplate.cli import ruling

    ruling.show(as_json=as_json, profile=profile)


@app.command("set")
def write(
    rules: Rules = None,
    none: Annotated[bool, typer.Option("--none", help="No rules at all.")] = False,
    expires: Annotated[
        int | None, typer.Option(metavar="SECONDS", min=1, help="How long an ask waits; then it is answered.")
    ] = None,
    role: Annotated[str | None, typer.Option(help="The role of a key that may answer.")] = None,
    two_people: Annotated[
        bool | None, typer.Option("--two-people/--one-person", help="May who asked for the work answer?")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Write the organisation's rules, in the place of those that it has. Takes the role admin or policy_admin."""
    from footplate.cli import ruling

    if none and rules:
        raise typer.BadParameter("either rules or none", param_hint="--none")
    terms = {"expires_after_seconds": expires, "role": role, "two_people": two_people}
    changed = {name: value for name, value in terms.items() if value is not None}
    ruling.write(rules, changed, none=none, as_json=as_json, profile=profile)


@app.command()
def explain(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="A shell command, as one argument.")],
    rules: Rules = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="The working tree.", show_default="this directory")
    ] = Path(),
    as_json: options.Json = False,
) -> None:
    """Show how a command is read and which rule decides on each part of it, without a server."""
    from footplate.cli import explaining

    explaining.explain(command, rules, directory, as_json=as_json)


@app.command()
def replay(
    rules: Rules = None,
    layer: Annotated[
        Layer, typer.Option(help="Whose rules they would be, in the place of those that it has.")
    ] = Layer.ORGANISATION,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Calls of this session alone.")] = None,
    project: Annotated[str | None, typer.Option(metavar="ID", help="Calls of sessions on this project.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Calls since then: 7d, 12h, or a moment.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Calls that are judged, the newest first.")] = 10_000,
    show: Annotated[int, typer.Option(min=0, help="Changed calls that are shown.")] = 50,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show what proposed rules would have said of calls that were made: nothing is stored, and nothing runs."""
    from footplate.cli import replaying

    replaying.replay(
        rules,
        layer=layer.value,
        session=session,
        project=project,
        since=since,
        limit=limit,
        shown=show,
        as_json=as_json,
        profile=profile,
    )
