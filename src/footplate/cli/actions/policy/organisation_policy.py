"""Implements `footplate policy show` and `footplate policy set`, for the organisation's rules, hooks and approval
settings.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from footplate.cli.actions.policy import rule_files
from footplate.cli.actions.policy.explain import OUTCOME_COLOURS, colour_outcome
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import print_json, quote
from footplate.client import AsyncFootplate, Policy

_APPLIED_NOTE: Final = "The change applies to all sessions within a second, including running ones."


def show_policy(*, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.policies.retrieve(), profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
    else:
        _print_policy(found)


def update_policy(
    files: Sequence[Path] | None, approval_settings: dict[str, Any], *, none: bool, as_json: bool, profile: str | None
) -> None:
    """Replaces the rules, or removes them with `none`. With only `approval_settings`, the rules stay."""
    settings = None if none or (approval_settings and not files) else rule_files.load_rule_files(files, as_json=as_json)

    async def work(client: AsyncFootplate, _server: Server) -> tuple[Policy, list[str]]:
        rules: dict[str, Any] = {}
        notes: list[str] = []
        if settings is not None:
            rules, notes = await rule_files.import_rules(client, settings)
        current = await client.policies.retrieve() if approval_settings else None
        approvals = None if current is None else {**current.approvals, **approval_settings}
        keeps_rules = settings is None and not none
        updated = await client.policies.update(
            permissions=None if keeps_rules else rules, approvals=approvals, replaces=current
        )
        return updated, notes

    written, notes = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(written.wire())
        return
    _print_policy(written)
    for note in notes:
        terminal_io.err().print(f"[dim]{quote(note)}[/]")
    terminal_io.err().print(f"[dim]{_APPLIED_NOTE}[/]")


def _print_policy(policy: Policy) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for outcome in OUTCOME_COLOURS:
        for rule in policy.permissions.get(outcome) or []:
            table.add_row(colour_outcome(outcome), quote(rule))
    for event, groups in (policy.permissions.get("hooks") or {}).items():
        for group in groups:
            for hook in group["hooks"]:
                what = hook.get("command") or hook.get("url") or hook.get("name")
                table.add_row("hook", quote(f"{event} {group.get('matcher') or '*'}: {what}"))
    console = terminal_io.out()
    if table.row_count:
        terminal_io.print_table(table)
    else:
        console.print("The organisation has no rules. Sessions are limited only by their environment.")
    console.print(quote(f"Approvals: {_describe_approvals(policy.approvals)}."))


def _describe_approvals(approvals: dict[str, Any]) -> str:
    seconds = approvals.get("expires_after_seconds")
    parts = ["no time limit" if seconds is None else f"{approvals['outcome']} after {seconds} s without a decision"]
    parts += [f"only a key with the role {approvals['role']} can approve"] if approvals.get("role") else []
    parts += ["the person whose message led to a call cannot approve it"] if approvals.get("two_people") else []
    return "; ".join(parts)
