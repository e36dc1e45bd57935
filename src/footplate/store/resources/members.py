"""Stores the members of an organisation, their teams and their API keys.

Only SHA-256 hashes of the secrets are stored, which is safe because the secrets are long and random.
"""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import asyncpg

from footplate.domain import audit, ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.members import ApiKey, Member, MemberUnit, Team
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import SignInMethod
from footplate.domain.organisations.visibility import Audience, check_may_choose
from footplate.store.database import SQL, Connection, bind
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.resources.projects import check_usable
from footplate.store.row_mapping import Row

_PREFIX: Final = "fp_"


class MemberUnitOfWork(AuditUnitOfWork, MemberUnit):
    """The methods of a unit of work that change members and API keys."""

    _connection: Connection

    async def create_member(
        self, principal: Principal, *, kind: PrincipalKind, name: str, roles: Sequence[str]
    ) -> Member:
        member = await insert_member(self._connection, principal.organisation, kind, name, roles)
        await self._record_change(principal, "member.create", member.id, {"name": name, "roles": [*roles]})
        return member

    async def update_member(
        self,
        principal: Principal,
        member_id: str,
        *,
        roles: Sequence[str] | None,
        disabled: bool | None,
        successor_id: str | None = None,
    ) -> Member:
        if successor_id is not None:
            await self.check_members(principal, [successor_id])
        try:
            row = await self._connection.fetchrow(
                SQL["update_member"],
                member_id,
                principal.organisation,
                None if roles is None else [*roles],
                disabled,
                successor_id,
            )
        except asyncpg.UniqueViolationError:
            raise Conflict(
                "Another member or a team has the name of this member now, so it cannot be enabled.",
                help_text="Disable the other member first, or create a new member with another name.",
            ) from None
        if row is None or row["kind"] == PrincipalKind.TEAM:
            raise NotFound("member", member_id)
        if disabled:
            # Before the keys: a program that is fetching its key now commits first, or gets none.
            await self._connection.execute(SQL["withdraw_device_authorizations"], member_id)
            await self._connection.execute(SQL["revoke_keys_of_member"], member_id)
        if successor_id is not None:
            for noun in ("sessions", "batches", "deployments", "triggers"):
                statement = SQL[f"hand_over_{noun}"]
                await self._connection.execute(statement, member_id, principal.organisation, successor_id)
        if disabled is not None:
            await self._connection.execute(SQL["wake_waiting_sessions"])
            await self._connection.execute(SQL["release_turns_of_member"], member_id, principal.organisation)
        updated = await self._fetch("member", member_id, principal)
        assert updated is not None
        member = load_member(updated)
        details: JsonObject = {"roles": [*member.roles], "disabled": member.disabled_at is not None}
        if successor_id is not None:
            details["successor"] = successor_id
        await self._record_change(principal, "member.update", member.id, details)
        return member

    async def create_team(self, principal: Principal, *, name: str, member_ids: Sequence[str]) -> Team:
        team = await insert_member(self._connection, principal.organisation, PrincipalKind.TEAM, name, [])
        await self._record_change(principal, "team.create", team.id, {"name": name})
        return await self.update_team(principal, team.id, add=member_ids, remove=[])

    async def update_team(
        self, principal: Principal, team_id: str, *, add: Sequence[str], remove: Sequence[str]
    ) -> Team:
        if await self._fetch("team", team_id, principal) is None:
            raise NotFound("team", team_id)
        await self.check_members(principal, add)
        await self._connection.execute(SQL["add_team_members"], team_id, [*add])
        await self._connection.execute(SQL["remove_team_members"], team_id, [*remove])
        row = await self._fetch("team", team_id, principal)
        assert row is not None
        if add or remove:
            details: JsonObject = {"add": [*add], "remove": [*remove]}
            await self._record_change(principal, "team.update", team_id, details)
        return load_team(row)

    async def check_members(self, principal: Principal, member_ids: Sequence[str]) -> None:
        """Raises `NotFound` unless all are people or service accounts that are not disabled."""
        rows = await self._connection.fetch(SQL["members_of"], [*member_ids], principal.organisation)
        for missing in set(member_ids) - {row["id"] for row in rows}:
            raise NotFound("member", missing)

    async def create_api_key(
        self,
        principal: Principal,
        *,
        name: str,
        member_id: str | None,
        roles: Sequence[str],
        expires_at: datetime | None,
        project_ids: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        if member_id is not None:
            await self.check_members(principal, [member_id])
        if project_ids is not None:
            await check_usable(self._connection, principal, project_ids)
        key_id, secret = await insert_key(
            self._connection,
            principal.organisation,
            name,
            roles,
            member_id=member_id,
            expires_at=expires_at,
            created_by=principal.id,
            project_ids=project_ids,
        )
        key = await self._load_key(principal, key_id)
        details: JsonObject = {"name": name, "member": key.member_id, "roles": [*roles]}
        if project_ids is not None:
            details["project_ids"] = [*project_ids]
        await self._record_change(principal, "api_key.create", key_id, details)
        return key, secret

    async def revoke_api_key(self, principal: Principal, key_id: str) -> ApiKey:
        await self._connection.execute(SQL["revoke_key"], key_id, principal.organisation)
        key = await self._load_key(principal, key_id)
        await self._record_change(principal, "api_key.revoke", key_id, {"name": key.name})
        return key

    async def rotate_api_key(self, principal: Principal, key_id: str) -> tuple[ApiKey, str]:
        key = await self._load_key(principal, key_id)
        secret = new_secret()
        if not await self._connection.fetchval(
            SQL["replace_secret"], key_id, principal.organisation, hash_secret(secret)
        ):
            raise Conflict(f"API key {key_id!r} is revoked.", help_text="Create a new key instead.")
        await self._record_change(principal, "api_key.rotate", key_id, {"name": key.name})
        return key, secret

    async def _load_key(self, principal: Principal, key_id: str) -> ApiKey:
        row = await self._fetch("api_key", key_id, principal)
        if row is None:
            raise NotFound("API key", key_id)
        return load_key(row)

    async def _fetch(self, query: str, item_id: str, principal: Principal) -> Row | None:
        return await self._connection.fetchrow(SQL[query], item_id, principal.organisation)

    async def _record_change(self, principal: Principal, action: str, item_id: str, details: JsonObject) -> None:
        await self.record(principal, audit.build_change_entry(action, item_id, details))


async def check_audience(connection: Connection, principal: Principal, audience: Audience) -> None:
    """Raises `NotFound` if the team does not exist, and `Forbidden` if the principal is not in it."""
    if audience.team_id is not None:
        if await connection.fetchrow(SQL["team"], audience.team_id, principal.organisation) is None:
            raise NotFound("team", audience.team_id)
        check_may_choose(principal, audience)


async def insert_member(
    connection: Connection,
    organisation: str,
    kind: PrincipalKind,
    name: str,
    roles: Sequence[str],
    *,
    member_id: str | None = None,
) -> Member:
    try:
        row = await connection.fetchrow(
            SQL["insert_member"],
            *(member_id or ids.new_id(ids.TEAM if kind is PrincipalKind.TEAM else ids.MEMBER), organisation),
            *(kind.value, name, [*roles]),
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(
            f"There is already a member or a team with the name {name!r}.", help_text="Choose another name."
        ) from None
    assert row is not None
    return load_member(row)


async def insert_key(
    connection: Connection,
    organisation: str,
    name: str,
    roles: Sequence[str],
    *,
    member_id: str | None = None,
    expires_at: datetime | None = None,
    created_by: str | None = None,
    project_ids: Sequence[str] | None = None,
) -> tuple[str, str]:
    """Inserts a key and returns its id and secret. Without a member, it gets a service account with its own id."""
    key_id, secret = ids.new_id(ids.API_KEY), new_secret()
    if member_id is None:
        await insert_member(connection, organisation, PrincipalKind.SERVICE, name, roles, member_id=key_id)
    try:
        await connection.execute(
            *bind(
                "insert_key",
                id=key_id,
                organisation=organisation,
                principal=member_id or key_id,
                name=name,
                secret_hash=hash_secret(secret),
                roles=[*roles],
                expires_at=expires_at,
                created_by=created_by,
                project_ids=None if project_ids is None else [*project_ids],
            )
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(
            f"This member already has an API key with the name {name!r}.",
            help_text="Choose another name, or replace the secret of that key: footplate api-keys rotate",
        ) from None
    return key_id, secret


def new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def load_member(row: Row) -> Member:
    methods = {SignInMethod.OIDC: row["has_identity"], SignInMethod.API_KEY: row["has_key"]}
    return Member(
        id=row["id"],
        kind=PrincipalKind(row["kind"]),
        name=row["name"],
        roles=row["roles"],
        created_at=row["created_at"],
        disabled_at=row["disabled_at"],
        successor_id=row["successor"],
        email=row["email"],
        sign_in_methods=[method for method, is_possible in methods.items() if is_possible],
    )


def load_team(row: Row) -> Team:
    return Team(id=row["id"], name=row["name"], member_ids=row["member_ids"], created_at=row["created_at"])


def load_key(row: Row) -> ApiKey:
    return ApiKey(
        id=row["id"],
        name=row["name"],
        member_id=row["principal"],
        member_name=row["member_name"],
        roles=row["roles"],
        project_ids=row["project_ids"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )
