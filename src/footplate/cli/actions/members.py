"""Implements `footplate members`, `footplate teams` and the commands of `footplate api-keys` that ask a server."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import member_tables, terminal_io
from footplate.cli.render.terminal_io import print_note
from footplate.client import (
    ApiKey,
    AsyncFootplate,
    ClientError,
    Forbidden,
    Member,
    NotFound,
    Project,
    Session,
    Team,
)
from footplate.client.pagination import Pages, drop_none

_MEMBER_PREFIXES: Final = ("memb_", "key_")
"""The service account of a key that was created without a member has the id of the key."""


def list_members(*, include_disabled: bool, team: str | None, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Member]:
        found = [each async for each in client.members.list(limit=100, include_archived=include_disabled)]
        if team is None:
            return found
        ids = set((await client.teams.retrieve(await resolve_team(client, team))).member_ids)
        return [each for each in found if each.id in ids]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([member.wire() for member in found])
    else:
        member_tables.print_members(found)


def add_member(name: str, *, kind: str, roles: Sequence[str], as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        return await client.members.create(name=name, kind=kind, roles=[*roles])

    _print_member(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def set_roles(wanted: str, *, roles: Sequence[str], as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        return await client.members.update(await resolve_member(client, wanted), roles=[*roles])

    _print_member(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def disable_member(wanted: str, *, successor: str | None, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        member_id = await resolve_member(client, wanted, include_disabled=True)
        successor_id = await resolve_member(client, successor) if successor is not None else None
        return await client.members.update(member_id, disabled=True, successor_id=successor_id)

    member = run_with_client(work, profile=profile, as_json=as_json)
    _print_member(member, as_json=as_json)
    if not as_json:
        member_tables.print_offboarding(member)


def enable_member(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Member:
        member_id = await resolve_member(client, wanted, include_disabled=True)
        return await client.members.update(member_id, disabled=False)

    member = run_with_client(work, profile=profile, as_json=as_json)
    _print_member(member, as_json=as_json)
    if not as_json:
        print_note(
            "Its earlier API keys stay revoked. Create a new one: "
            f"footplate api-keys create --name NAME --member {member.id} --profile PROFILE"
        )


def list_teams(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Team]:
        return [each async for each in client.teams.list(limit=100)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([team.wire() for team in found])
    else:
        member_tables.print_teams(found)


def create_team(name: str, *, members: Sequence[str], as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Team:
        return await client.teams.create(name=name, member_ids=[await resolve_member(client, each) for each in members])

    team = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(team.wire())
    else:
        terminal_io.print_result(team.id)


def update_team(
    wanted: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Team:
        return await client.teams.update(
            await resolve_team(client, wanted),
            add=[await resolve_member(client, each) for each in add],
            remove=[await resolve_member(client, each, include_disabled=True) for each in remove],
        )

    team = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(team.wire())
    else:
        member_tables.print_teams([team])


def list_keys(*, include_revoked: bool, as_json: bool, profile: str | None) -> None:
    projects: dict[str, Project] = {}

    async def work(client: AsyncFootplate, _server: Server) -> list[ApiKey]:
        found = [each async for each in client.api_keys.list(limit=100, include_archived=include_revoked)]
        if not as_json and any(key.project_ids for key in found):
            projects.update({each.id: each async for each in client.projects.list(limit=100, include_archived=True)})
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([key.wire() for key in found])
    else:
        member_tables.print_keys(found, projects)


def create_key(
    name: str,
    *,
    member: str | None,
    projects: Sequence[str],
    roles: Sequence[str],
    expires_at: str | None,
    profile: str | None,
) -> str:
    async def work(client: AsyncFootplate, _server: Server) -> ApiKey:
        return await client.api_keys.create(
            name=name,
            member_id=await resolve_member(client, member) if member is not None else None,
            project_ids=[await resolve_project(client, each) for each in projects] or None,
            roles=[*roles],
            expires_at=expires_at,
        )

    return run_with_client(work, profile=profile).secret or ""


def revoke_key(key_id: str, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.api_keys.revoke(key_id), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(found.wire())
    else:
        terminal_io.print_result(f"{found.id} revoked")


def rotate_key(key_id: str, *, profile: str | None) -> str:
    return run_with_client(lambda client, _: client.api_keys.rotate(key_id), profile=profile).secret or ""


async def resolve_member(client: AsyncFootplate, wanted: str, *, include_disabled: bool = False) -> str:
    """Resolves the name of a member. Only administrators can read the list of members."""
    if wanted.startswith(_MEMBER_PREFIXES):
        return wanted
    try:
        return await _find_by_name(
            "member", wanted, client.members.list(limit=100, include_archived=include_disabled), "members ls"
        )
    except Forbidden:
        raise ClientError(
            f"Only administrators can find members by name, so {wanted!r} is not known.",
            help_text="Use the ID of the member, which an administrator can tell you.",
        ) from None


async def find_member_name(client: AsyncFootplate, member_id: str) -> str:
    """Returns an empty text if the caller may not read the list of members."""
    with suppress(Forbidden):
        async for member in client.members.list(limit=100, include_archived=True):
            if member.id == member_id:
                return member.name
    return ""


async def resolve_team(client: AsyncFootplate, wanted: str) -> str:
    if wanted.startswith("team_"):
        return wanted
    return await _find_by_name("team", wanted, client.teams.list(limit=100), "teams ls")


async def resolve_audience(client: AsyncFootplate, visibility: str | None, team: str | None) -> dict[str, str]:
    """Returns who can see a session or a file, as fields of the API. Empty: no choice was made."""
    team_id = await resolve_team(client, team) if team is not None else None
    return drop_none(visibility=visibility, team_id=team_id)


async def load_team(client: AsyncFootplate, session: Session) -> Team | None:
    """Returns the team that can see the session."""
    if session.team_id is None:
        return None
    try:
        return await client.teams.retrieve(session.team_id)
    except NotFound:
        return None


async def resolve_project(client: AsyncFootplate, wanted: str) -> str:
    if wanted.startswith("proj_"):
        return wanted
    return await _find_by_name("project", wanted, client.projects.list(limit=100), "projects ls")


async def _find_by_name(kind: str, name: str, pages: Pages[Any], command: str) -> str:
    ids = [each.id async for each in pages if each.name == name]
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        raise ClientError(f"Several {kind}s are named {name!r}: {', '.join(ids)}.", help_text="Use one of these IDs.")
    raise ClientError(f"There is no {kind} named {name!r}.", help_text=f"`footplate {command}` lists the {kind}s.")


def _print_member(member: Member, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(member.wire())
    else:
        member_tables.print_members([member])
