"""Stores sign-ins through an identity provider, and creates and updates the members who sign in.

The state of a sign-in is bound to the browser by a secret in a cookie, and works once. A member is found by the issuer
and the subject of its token, never by its email. Its roles, and its teams that groups are mapped to, are replaced at
each sign-in.
"""

import hmac
import secrets
from typing import Final

import asyncpg

from footplate.domain import audit, ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import Browser, SignInMethod
from footplate.domain.organisations.single_sign_on import (
    SIGN_IN_LIFETIME,
    ExternalIdentity,
    GroupGrant,
    GroupMapping,
    ReturnedSignIn,
    SignInFailed,
    choose_member_name,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.audit_trail import add_entry
from footplate.store.resources.members import hash_secret, insert_member
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.failures import SignInFailures

_ADMIN: Final = "admin"


class SingleSignOnDatabase:
    def __init__(
        self,
        database: Database,
        keys: ApiKeys,
        sessions: BrowserSessionStore,
        failures: SignInFailures,
        mapping: GroupMapping,
        organisation: str,
    ) -> None:
        self._database = database
        self._keys = keys
        self._sessions = sessions
        self._failures = failures
        self._mapping = mapping
        self._organisation = organisation

    async def begin(self, return_to: str, browser: Browser) -> tuple[str, str]:
        await self._failures.count_start(browser)
        state, browser_secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        async with self._database.connection() as connection:
            await connection.execute(
                SQL["insert_oidc_sign_in"], hash_secret(state), hash_secret(browser_secret), return_to, SIGN_IN_LIFETIME
            )
        return state, browser_secret

    async def redeem(self, state: str, browser_secret: str | None) -> ReturnedSignIn:
        async with self._database.connection() as connection:
            row = await connection.fetchrow(SQL["redeem_oidc_sign_in"], hash_secret(state))
        if row is None or not row["is_valid"]:
            raise SignInFailed("state_invalid", "This sign-in was already used or has expired.")
        if browser_secret is None or not hmac.compare_digest(row["browser_hash"], hash_secret(browser_secret)):
            raise SignInFailed("state_invalid", "This sign-in was started by another browser.")
        return ReturnedSignIn(row["return_to"])

    async def check_failures(self, browser: Browser) -> None:
        await self._failures.check(browser)

    async def record_failure(self, reason: str, browser: Browser) -> None:
        await self._failures.record(SignInMethod.OIDC, browser, reason)

    async def start_session(self, identity: ExternalIdentity, browser: Browser) -> tuple[Principal, str]:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["insert_organisation"], self._organisation, self._organisation)
            await connection.execute(SQL["lock_identity"], self._organisation)
            row = await connection.fetchrow(SQL["identity"], self._organisation, identity.issuer, identity.subject)
            refusal, secret = None, ""
            if row is not None and row["is_disabled"]:
                refusal = SignInFailed("member_disabled", "Your access to this server was disabled.")
            else:
                member_id, has_role = await self._update_member(connection, identity, row)
                if member_id is not None and has_role:
                    secret = await self._sessions.insert(
                        connection, SignInMethod.OIDC, browser, self._organisation, member_id, key=None
                    )
                else:
                    refusal = SignInFailed("no_role", "None of your groups gives you a role on this server.")
        if refusal is not None:
            raise refusal
        return await self._keys.authenticate(secret), secret

    async def _update_member(
        self, connection: Connection, identity: ExternalIdentity, row: asyncpg.Record | None
    ) -> tuple[str | None, bool]:
        """Returns the member, and whether it has a role. A person without a role is not created, but loses the roles of
        earlier sign-ins.
        """
        grant = self._mapping.grant(identity.groups)
        is_first_admin = await self._is_first_admin(connection, identity, row)
        roles = sorted(grant.roles | {_ADMIN}) if is_first_admin else sorted(grant.roles)
        if row is None:
            if not roles:
                return None, False
            name = await self._free_name(connection, identity)
            member = await insert_member(connection, self._organisation, PrincipalKind.PERSON, name, roles)
            member_id = member.id
            await self._record(connection, "member.create", member_id, member_id, {"name": name, "roles": [*roles]})
        else:
            member_id = str(row["id"])
            if sorted(row["roles"]) != roles:
                await connection.execute(SQL["set_roles"], member_id, self._organisation, roles)
                await self._record(connection, "member.update", member_id, member_id, {"roles": [*roles]})
        await connection.execute(
            *bind(
                "save_identity",
                issuer=identity.issuer,
                subject=identity.subject,
                organisation=self._organisation,
                principal=member_id,
                email=identity.email,
                is_first_admin=is_first_admin,
            )
        )
        await self._update_teams(connection, member_id, grant)
        return member_id, bool(roles)

    async def _is_first_admin(
        self, connection: Connection, identity: ExternalIdentity, row: asyncpg.Record | None
    ) -> bool:
        if not self._mapping.names_first_admin(identity):
            return False
        if row is not None and row["is_first_admin"]:
            return True
        return not await connection.fetchval(SQL["has_administrator"], self._organisation)

    async def _free_name(self, connection: Connection, identity: ExternalIdentity) -> str:
        names = choose_member_name(identity)
        for name in names:
            if not await connection.fetchval(SQL["is_name_used"], self._organisation, name):
                return name
        return f"{names[0]} ({ids.new_id(ids.MEMBER)})"

    async def _update_teams(self, connection: Connection, member_id: str, grant: GroupGrant) -> None:
        """Adds the member to the teams of its groups, and removes it from the other teams that groups are mapped to."""
        rows = await connection.fetch(SQL["teams_by_name"], self._organisation, [*self._mapping.teams], member_id)
        teams = {row["name"]: row for row in rows}
        for name in sorted(self._mapping.teams):
            is_granted = name in grant.teams
            if name not in teams:
                if not is_granted or await connection.fetchval(SQL["is_name_used"], self._organisation, name):
                    continue  # a person has this name
                team = await insert_member(connection, self._organisation, PrincipalKind.TEAM, name, [])
                await self._record(connection, "team.create", team.id, member_id, {"name": name})
                team_id, is_member = team.id, False
            else:
                team_id, is_member = teams[name]["id"], teams[name]["is_member"]
            if is_granted != is_member:
                change = "add" if is_granted else "remove"
                statement = SQL["add_team_members" if is_granted else "remove_team_members"]
                await connection.execute(statement, team_id, [member_id])
                await self._record(connection, "team.update", team_id, member_id, {change: [member_id]})

    async def _record(
        self, connection: Connection, action: str, item_id: str, member_id: str, details: JsonObject
    ) -> None:
        entry = audit.build_change_entry(action, item_id, {**details, "source": "oidc"})
        await add_entry(connection, self._organisation, entry, principal=member_id)
