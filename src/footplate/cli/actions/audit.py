"""Implements `footplate audit`: ls, export and verify."""

from dataclasses import asdict, dataclass
from typing import Final

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import Exit, print_json, print_json_line
from footplate.client import AsyncFootplate, AuditEntry

_ADVICE: Final = (
    "Compare changed or missing entries with an export that you keep elsewhere, and restore them from a backup. "
    "If entries are not sealed, check the workers' logs for `sweep`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    kind: str | None = None
    session_id: str | None = None
    member: str | None = None
    outcome: str | None = None
    tool: str | None = None


def list_entries(wanted: EntryFilter, *, limit: int, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[AuditEntry]:
        found: list[AuditEntry] = []
        async for entry in client.audit.list(limit=min(limit, 100), **asdict(wanted)):
            found.append(entry)
            if len(found) == limit:
                break
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([entry.wire() for entry in found])
    else:
        resource_tables.print_audit(found)


def export(wanted: EntryFilter, *, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> None:
        async for entry in client.audit.list(limit=100, order="asc", **asdict(wanted)):
            print_json_line(entry.wire())

    run_with_client(work, profile=profile, as_json=True)


def verify(head: str | None, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.audit.verify(head=head), profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
    else:
        terminal_io.print_result(f"{found.entries} entries in {found.batches} batches, {found.unsealed} not sealed yet")
        terminal_io.print_result(f"head {found.head}")
        for fault in found.faults:
            terminal_io.print_error(fault, _ADVICE)
    raise typer.Exit(Exit.FAILED if found.faults else Exit.DONE)
