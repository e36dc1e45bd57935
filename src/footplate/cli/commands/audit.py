"""Defines `footplate audit`. Each command imports its implementation only when it runs, so that every command starts
quickly.
"""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

audit = typer.Typer(
    help="Read and verify the audit trail: decisions, approvals, rules, hooks and errors.",
    no_args_is_help=True,
    cls=GroupedHelp,
)


class EntryKind(StrEnum):
    DECISION = "decision"
    APPROVAL = "answer"
    POLICY = "policy"
    HOOK = "hook"
    CHANGE = "change"
    REFUSAL = "refusal"
    SIGN_IN = "sign_in"
    ERROR = "error"
    TERMINAL = "terminal"


class Outcome(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    EDIT = "edit"
    BLOCK = "block"
    NONE = "none"
    FAILED = "failed"
    RETRIED = "retried"


KindOption = Annotated[EntryKind | None, typer.Option(help="Only entries of this kind.")]
SessionOption = Annotated[
    str | None, typer.Option("--session", "-s", metavar="ID", help="Only entries of this session.")
]
MemberOption = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Only entries of this member: its name or ID.")
]
OutcomeOption = Annotated[Outcome | None, typer.Option(help="Only entries with this outcome.")]
ToolOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only calls of this tool, for example `bash`.")]


@audit.command("ls")
def list_entries(
    kind: KindOption = None,
    session: SessionOption = None,
    by: MemberOption = None,
    outcome: OutcomeOption = None,
    tool: ToolOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of entries.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List entries, newest first."""
    from footplate.cli.actions import audit as actions

    wanted = actions.EntryFilter(kind=kind, session_id=session, member=by, outcome=outcome, tool=tool)
    actions.list_entries(wanted, limit=limit, as_json=as_json, profile=profile)


@audit.command("export")
def export(
    kind: KindOption = None,
    session: SessionOption = None,
    by: MemberOption = None,
    outcome: OutcomeOption = None,
    tool: ToolOption = None,
    profile: options.Profile = None,
) -> None:
    """Print all entries, oldest first, each as one line of JSON, for log collectors."""
    from footplate.cli.actions import audit as actions

    wanted = actions.EntryFilter(kind=kind, session_id=session, member=by, outcome=outcome, tool=tool)
    actions.export(wanted, profile=profile)


@audit.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head hash that you saved earlier. It must still be in the trail."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Recompute every hash and report changed, removed or reordered entries. Exits with 1 if there are any."""
    from footplate.cli.actions import audit as actions

    actions.verify(head, as_json=as_json, profile=profile)
