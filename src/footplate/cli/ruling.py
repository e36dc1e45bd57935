"""Implements `footplate policy show` and `set`: the organisation's rules, hooks and approval settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from footplate.cli import output, rule_files
from footplate.cli.connection import talk
from footplate.cli.explaining import COLOURS, coloured
from footplate.cli.output import print_json, quote
from footplate.cli.profiles import Server
from footplate.client import AsyncFootplate, Policy

_ONCE: Final = "The change applies to all sessions within a second, including running ones."


def show(*, as_json: bool, profile: str | None) -> None:
    found = talk(lambda client, _: client.policies.retrieve(), profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
    else:
        _print(found)


def write(
    files: Sequence[Path] | None, terms: dict[str, Any], *, none: bool, as_json: bool, profile: str | None
) -> None:
    """Replaces the rules, or removes them with `none`. With only `terms`, changes just the approval settings."""
    settings = None if none or (terms and not files) else rule_files.chosen(files, as_json=as_json)

    async def work(client: AsyncFootplate, _server: Server) -> tuple[Policy, list[str]]:
        rules, notes = ({}, []) if settings is None else await rule_files.imported(client, settings)
        approvals = {**(await client.policies.retrieve()).approvals, **terms} if terms else None
        kept = settings is None and not none
        return await client.policies.update(permissions=None if kept else rules, approvals=approvals), notes

    written, notes = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(written.wire())
        return
    _print(written)
    for note in notes:
        output.err().print(f"[dim]{quote(note)}[/]")
    output.err().print(f"[dim]{_ONCE}[/]")


def _print(policy: Policy) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for outcome in COLOURS:
        for rule in policy.permissions.get(outcome) or []:
            table.add_row(coloured(outcome), quote(rule))
    for event, groups in (policy.permissions.get("hooks") or {}).items():
        for group in groups:
            for hook in group["hooks"]:
                what = hook.get("command") or hook.get("url") or hook.get("name")
                table.add_row("hook", quote(f"{event} {group.get('matcher') or '*'}: {what}"))
    console = output.out()
    if table.row_count:
        console.print(table)
    else:
        console.print("The organisation has no rules. Sessions are limited only by their environment.")
    console.print(quote(f"Approvals: {_terms(policy.approvals)}."))


def _terms(approvals: dict[str, Any]) -> str:
    seconds = approvals.get("expires_after_seconds")
    said = ["no time limit" if seconds is None else f"{approvals['outcome']} after {seconds} s without a decision"]
    said += [f"only a key with the role {approvals['role']} can approve"] if approvals.get("role") else []
    said += ["the person who sent the message cannot approve"] if approvals.get("two_people") else []
    return "; ".join(said)
