"""Implements `footplate limits`."""

from footplate.cli.actions.members import resolve_member
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.client import AsyncFootplate, Limit


def show_limits(*, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.limits.list(), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([limit.wire() for limit in found])
    else:
        resource_tables.print_limits(found)


def set_limit(
    name: str, value: int | None, *, scope: str, member: str | None, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Limit:
        member_id = None if member is None else await resolve_member(client, member)
        return await client.limits.set(name, value, scope=scope, member_id=member_id)

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(found.wire())
    else:
        resource_tables.print_limits([found])
