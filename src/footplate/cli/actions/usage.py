"""Implements `footplate usage`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from footplate.cli.actions import members
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.client import AsyncFootplate, ClientError, UsageReport


async def _resolve_session(client: AsyncFootplate, wanted: str) -> str:
    found = await session_start.resolve_session_id(client, wanted)
    if not found.startswith("sesn_"):
        raise ClientError(f"{wanted!r} is not the ID of a session.", help_text="`footplate ls` lists the sessions.")
    return found


_FILTERS: Final[Mapping[str, Callable[[AsyncFootplate, str], Awaitable[str]]]] = {
    "session": _resolve_session,
    "agent": session_start.resolve_agent,
    "member": members.resolve_member,
    "project": members.resolve_project,
}
"""Returns the id for a value that a user may give as a name. Raises `ClientError` if there is none."""


def show_usage(
    group_by: Sequence[str],
    filters: Mapping[str, Sequence[str]],
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    min_iterations: int | None,
    as_json: bool,
    profile: str | None,
) -> None:
    names: dict[str, str] = {}
    """Of projects, by their id."""

    async def work(client: AsyncFootplate, _server: Server) -> UsageReport:
        if "project" in group_by and not as_json:
            names.update({project.id: project.name async for project in client.projects.list(limit=100)})
        return await client.usage.query(
            group_by=group_by,
            start=None if since is None else since.replace(tzinfo=UTC),
            end=None if until is None else until.replace(tzinfo=UTC),
            limit=limit,
            filters={
                name: [await _FILTERS[name](client, value) for value in values] if name in _FILTERS else values
                for name, values in filters.items()
            },
            min_iterations=min_iterations,
        )

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(found.wire())
        return
    resource_tables.print_usage(found, group_by, names)
    if found.has_more:
        terminal_io.print_note("There are more lines. Request a shorter period or fewer groups.")
