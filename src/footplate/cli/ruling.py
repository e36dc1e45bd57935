"""What `footplate policy show` and `set` do: the organisation's rules, hooks and terms for approvals."""

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

_ONCE: Final = "Sessions obey it within a second, also those that run. `footplate policy show` prints it."


def show(*, as_json: bool, profile: str | None) -> None:
    found = talk(lambda client, _: client.policies.retrieve(), profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
    else:
        _print(found)


def write(
    files: Sequence[Path] | None, terms: dict[str, Any], *, none: bool, as_json: bool, profile: str | None
) -> None:
    """`none`: no rules at all. `terms`: those that are changed; where they are all that is said, rules stay."""
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
        console.print("The organisation has no rules: what a session may do is its environment's to say.")
    console.print(quote(f"Asked: {_terms(policy.approvals)}."))


def _terms(approvals: dict[str, Any]) -> str:
    seconds = approvals.get("expires_after_seconds")
    said = [
        "a person has as long as it takes"
        if seconds is None
        else f"after {seconds} s without an answer: {approvals['outcome']}"
    ]
    said += [f"only a key with the role {approvals['role']} may answer"] if approvals.get("role") else []
    said += ["never the key that asked for the work"] if approvals.get("two_people") else []
    return "; ".join(said)
