"""Implements `footplate members` and the commands of `footplate api-keys` that ask a server."""

from collections.abc import Sequence

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.client import ApiKey, AsyncFootplate, Member


def list_members(*, include_disabled: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Member]:
        return [each async for each in client.members.list(limit=100, include_archived=include_disabled)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([member.wire() for member in found])
    else:
        resource_tables.print_members(found)


def add_member(name: str, *, kind: str, roles: Sequence[str], as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        return await client.members.create(name=name, kind=kind, roles=[*roles])

    _print_member(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def update_member(
    member_id: str,
    *,
    roles: Sequence[str] | None = None,
    disabled: bool | None = None,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        return await client.members.update(member_id, roles=None if roles is None else [*roles], disabled=disabled)

    _print_member(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def list_keys(*, include_revoked: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[ApiKey]:
        return [each async for each in client.api_keys.list(limit=100, include_archived=include_revoked)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([key.wire() for key in found])
    else:
        resource_tables.print_keys(found)


def create_key(
    name: str, *, member_id: str | None, roles: Sequence[str], expires_at: str | None, profile: str | None
) -> str:
    async def work(client: AsyncFootplate, _server: Server) -> ApiKey:
        return await client.api_keys.create(name=name, member_id=member_id, roles=[*roles], expires_at=expires_at)

    return run_with_client(work, profile=profile).secret or ""


def revoke_key(key_id: str, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.api_keys.revoke(key_id), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(found.wire())
    else:
        terminal_io.print_result(f"{found.id} revoked")


def rotate_key(key_id: str, *, profile: str | None) -> str:
    return run_with_client(lambda client, _: client.api_keys.rotate(key_id), profile=profile).secret or ""


def _print_member(member: Member, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(member.wire())
    else:
        resource_tables.print_members([member])
