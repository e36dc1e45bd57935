"""Stores browser sessions and one-time codes. Only SHA-256 hashes of the secrets are stored.

A session that was started with an API key ends when the key is revoked, expires or gets a new secret, because the query
that authenticates it checks the key. Every sign-in, and every failed one whose organisation is known, is in the audit
trail in the transaction of its effect.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from footplate.domain import audit, ids
from footplate.domain.errors import NotFound, Unauthenticated
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import (
    CODE_SECONDS,
    Browser,
    BrowserSession,
    CallerProfile,
    SignInMethod,
    is_session_secret,
    new_session_secret,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.api_keys import DEFAULT_IDLE, ApiKeys
from footplate.store.resources.audit_trail import add_entry
from footplate.store.resources.members import hash_secret
from footplate.store.resources.sign_in.failures import SignInFailures

CODE_LIFETIME: Final = timedelta(seconds=CODE_SECONDS)
DEFAULT_LIFETIME: Final = timedelta(days=7)


class BrowserSessionStore:
    def __init__(
        self,
        database: Database,
        keys: ApiKeys,
        failures: SignInFailures,
        *,
        lifetime: timedelta = DEFAULT_LIFETIME,
        idle: timedelta = DEFAULT_IDLE,
    ) -> None:
        self._database = database
        self._keys = keys
        self._failures = failures
        self._lifetime = lifetime
        self._idle = idle

    async def start_with_key(self, api_key: str, browser: Browser) -> tuple[Principal, str]:
        await self._failures.check(browser)
        digest = hash_secret(api_key)
        row = None if is_session_secret(api_key) else await self._database.fetchrow("key_by_secret", digest)
        if row is None or not row["is_valid"]:
            await self._failures.record(SignInMethod.API_KEY, browser, "invalid_key", row)
            raise Unauthenticated(
                "The API key is not valid: it does not exist, is revoked or has expired, or its owner is disabled.",
                help_text="Check the key, or create another one with `footplate api-keys create`.",
            )
        async with self._database.transaction() as connection:
            secret = await self.insert(
                *(connection, SignInMethod.API_KEY, browser, row["organisation"], row["principal"]),
                key=(row["id"], digest),
            )
        return await self._keys.authenticate(secret), secret

    async def create_code(self, principal: Principal, api_key: str) -> str:  # noqa: ARG002 - the key says who
        code = secrets.token_urlsafe(32)
        async with self._database.connection() as connection:
            await connection.execute(
                SQL["insert_one_time_code"], hash_secret(code), hash_secret(api_key), CODE_LIFETIME
            )
        return code

    async def start_with_code(self, code: str, browser: Browser) -> tuple[Principal, str]:
        await self._failures.check(browser)
        secret = None
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(SQL["redeem_one_time_code"], hash_secret(code))
            if row is not None and row["is_valid"]:
                secret = await self.insert(
                    *(connection, SignInMethod.ONE_TIME_CODE, browser, row["organisation"], row["principal"]),
                    key=(row["id"], row["secret_hash"]),
                )
        if secret is None:
            await self._failures.record(SignInMethod.ONE_TIME_CODE, browser, "invalid_code", row)
            raise Unauthenticated(
                "This sign-in link was already used or has expired.",
                help_text="Run `footplate dashboard` for a new link, or sign in with an API key.",
            )
        return await self._keys.authenticate(secret), secret

    async def insert(
        self,
        connection: Connection,
        method: SignInMethod,
        browser: Browser,
        organisation: str,
        member_id: str,
        *,
        key: tuple[str, bytes] | None,
    ) -> str:
        """Inserts a session with its audit entry, and returns its secret. `key` is the id and the hash of the API key
        with which the session ends.
        """
        session_id, secret = ids.new_id(ids.BROWSER_SESSION), new_session_secret()
        key_id, key_hash = key or (None, None)
        await connection.execute(SQL["remove_old_browser_sessions"])
        await connection.execute(
            *bind(
                "insert_browser_session",
                id=session_id,
                organisation=organisation,
                principal=member_id,
                secret_hash=hash_secret(secret),
                method=method.value,
                api_key=key_id,
                key_hash=key_hash,
                user_agent=browser.user_agent,
                address=browser.address,
                lifetime=self._lifetime,
            )
        )
        entry = audit.build_sign_in_entry(
            "browser_session.start", session_id, {"method": method.value, "address": browser.address, "api_key": key_id}
        )
        await add_entry(connection, organisation, entry, principal=member_id)
        return secret

    async def list_sessions(self, principal: Principal) -> Sequence[BrowserSession]:
        rows = await self._database.fetch("browser_sessions_of", principal.id, principal.organisation, self._idle)
        return [
            BrowserSession(
                id=row["id"],
                member_id=row["principal"],
                method=SignInMethod(row["method"]),
                user_agent=row["user_agent"],
                address=row["address"],
                created_at=row["created_at"],
                last_used_at=row["last_used_at"],
                expires_at=row["valid_until"],
            )
            for row in rows
        ]

    async def end_session(self, principal: Principal, session_id: str) -> None:
        async with self._database.transaction() as connection:
            found = await connection.fetchval(
                SQL["end_browser_session"], session_id, principal.id, principal.organisation
            )
            if found is None:
                raise NotFound("browser session", session_id)
            await self._record_end(connection, principal.organisation, principal.id, session_id)

    async def end_session_of(self, secret: str) -> None:
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(SQL["end_browser_session_by_secret"], hash_secret(secret))
            if row is not None:
                await self._record_end(connection, row["organisation"], row["principal"], row["id"])
        self._keys.forget(secret)

    async def load_profile(self, principal: Principal, secret: str) -> CallerProfile:
        row = await self._database.fetchrow(
            "principal_profile", principal.id, principal.organisation, [*principal.team_ids]
        )
        credential = await self._database.fetchrow("credential", hash_secret(secret), self._idle)
        if row is None or credential is None:
            raise Unauthenticated(
                "The API key or the browser session has ended.", help_text="Sign in again, or use another key."
            )
        is_session = is_session_secret(secret)
        return CallerProfile(
            kind=PrincipalKind(row["kind"]),
            email=row["email"],
            teams=[*zip(row["team_ids"], row["team_names"], strict=True)],
            expires_at=credential["valid_until"],
            key_id=credential["key_id"],
            method=SignInMethod(credential["method"]) if is_session else None,
            session_id=credential["id"] if is_session else None,
        )

    async def _record_end(self, connection: Connection, organisation: str, principal: str, session_id: str) -> None:
        entry = audit.build_sign_in_entry("browser_session.end", session_id, {})
        await add_entry(connection, organisation, entry, principal=principal)
