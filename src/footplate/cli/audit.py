"""`footplate audit`: what the gate decided and what people said of it. What it needs it imports when it is called."""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.grouping import Grouped

audit = typer.Typer(help="The audit trail: decisions, answers, rules, hooks.", no_args_is_help=True, cls=Grouped)


class Kind(StrEnum):
    DECISION = "decision"
    ANSWER = "answer"
    POLICY = "policy"
    HOOK = "hook"
    CHANGE = "change"
    REFUSAL = "refusal"


OfKind = Annotated[Kind | None, typer.Option(help="Only these.")]
OfSession = Annotated[str | None, typer.Option("--session", "-s", metavar="ID", help="Only of this session.")]


@audit.command("ls")
def list_entries(
    kind: OfKind = None,
    session: OfSession = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List entries, newest first."""
    from footplate.cli import auditing

    auditing.list_entries(kind, session, limit=limit, as_json=as_json, profile=profile)


@audit.command("export")
def export(kind: OfKind = None, session: OfSession = None, profile: options.Profile = None) -> None:
    """Print all of it, oldest first, a line of JSON for each entry, as collectors of logs read it."""
    from footplate.cli import auditing

    auditing.export(kind, session, profile=profile)


@audit.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head that you saved earlier: it must still be in the trail."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Make every hash again, and say what was changed, removed or reordered since it was sealed; exit 1 if anything."""
    from footplate.cli import auditing

    auditing.verify(head, as_json=as_json, profile=profile)
