"""Stores device authorizations, and creates the API keys of approved programs.

A key is created when the program fetches it, so its secret is never stored. Wrong user codes are counted for each
member, and after too many the right one is refused too, so the codes of other people's programs cannot be guessed.
"""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

from footplate.domain import audit
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.organisations.device_authorization import (
    INTERVAL_SECONDS,
    LIFETIME_SECONDS,
    AuthorizationDenied,
    AuthorizationPending,
    BrowserSessionRequired,
    Decision,
    DeviceAuthorization,
    DeviceCodeExpired,
    IssuedLoginKey,
    NewDeviceAuthorization,
    PollingTooFast,
    new_user_code,
    normalize_user_code,
)
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser, SignInLimitExceeded
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.audit_trail import add_entry
from footplate.store.resources.members import hash_secret, insert_key
from footplate.store.resources.sign_in.failures import SignInFailures

DEFAULT_KEY_LIFETIME: Final = timedelta(days=30)
_MAX_PENDING: Final = 10_000
_MAX_WRONG_CODES: Final = 10
_STATUSES: Final = {"approve": "approved", "deny": "denied"}


class DeviceAuthorizationStore:
    def __init__(
        self, database: Database, failures: SignInFailures, *, key_lifetime: timedelta = DEFAULT_KEY_LIFETIME
    ) -> None:
        self._database = database
        self._failures = failures
        self._key_lifetime = key_lifetime

    async def begin(self, client_name: str, browser: Browser) -> NewDeviceAuthorization:
        await self._failures.count_start(browser)
        new = NewDeviceAuthorization(device_code=secrets.token_urlsafe(32), user_code=new_user_code())
        async with self._database.connection() as connection:
            inserted = await connection.fetchval(
                *bind(
                    "insert_device_authorization",
                    device_hash=hash_secret(new.device_code),
                    user_code_hash=hash_secret(new.user_code),
                    client_name=client_name,
                    address=browser.address,
                    lifetime=timedelta(seconds=LIFETIME_SECONDS),
                    max_pending=_MAX_PENDING,
                )
            )
        if inserted is None:
            raise SignInLimitExceeded
        return new

    async def find(self, principal: Principal, secret: str, user_code: str) -> DeviceAuthorization:
        async with self._database.connection() as connection:
            await self._load_session(connection, secret)
        wrong_codes = f"codes {principal.id}"
        await self._failures.check_count(wrong_codes, _MAX_WRONG_CODES)
        row = await self._database.fetchrow("device_authorization", hash_secret(normalize_user_code(user_code)))
        if row is None:
            await self._failures.count(wrong_codes, _MAX_WRONG_CODES)
            raise NotFound("device authorization", user_code)
        return _load(row)

    async def decide(
        self, principal: Principal, secret: str, user_code: str, decision: Decision
    ) -> DeviceAuthorization:
        found = await self.find(principal, secret, user_code)
        async with self._database.transaction() as connection:
            session = await self._load_session(connection, secret)
            row = await connection.fetchrow(
                *bind(
                    "decide_device_authorization",
                    user_code_hash=hash_secret(normalize_user_code(user_code)),
                    status=_STATUSES[decision],
                    organisation=principal.organisation,
                    principal=principal.id,
                    roles=sorted(principal.roles),
                    project_ids=None if principal.project_ids is None else sorted(principal.project_ids),
                    api_key=session["api_key"],
                    key_hash=session["key_hash"],
                )
            )
            if row is None:
                raise Conflict(
                    f"This sign-in is already {found.status}.", help_text="Start again: run `footplate login`."
                )
            entry = audit.build_sign_in_entry(
                f"device_authorization.{decision}",
                session["id"],
                {"client_name": row["client_name"], "address": row["address"]},
                is_failure=decision == "deny",
            )
            await add_entry(connection, principal.organisation, entry, principal=principal.id)
        return _load(row)

    async def fetch_key(self, device_code: str, browser: Browser) -> IssuedLoginKey:
        digest = hash_secret(device_code)
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                SQL["poll_device_authorization"], digest, timedelta(seconds=INTERVAL_SECONDS - 1)
            )
        if row is None:
            await self._failures.check(browser)
            await self._failures.record("device", browser, "invalid_code")
            raise DeviceCodeExpired
        if row["is_too_fast"]:
            raise PollingTooFast
        if not row["is_valid"]:
            raise DeviceCodeExpired
        if row["status"] == "denied":
            raise AuthorizationDenied
        if row["status"] == "pending":
            raise AuthorizationPending
        async with self._database.transaction() as connection:
            approved = await connection.fetchrow(SQL["redeem_device_authorization"], digest)
            issued = None if approved is None else await self._create_key(connection, approved, browser)
        if issued is None:
            raise AuthorizationDenied
        return issued

    async def _create_key(self, connection: Connection, row: asyncpg.Record, browser: Browser) -> IssuedLoginKey:
        expires_at = datetime.now(UTC) + self._key_lifetime
        if row["parent_expires_at"] is not None:
            expires_at = min(expires_at, row["parent_expires_at"])
        key_id, secret = await insert_key(
            *(connection, row["organisation"], f"login {row['client_name']} {secrets.token_hex(4)}", row["roles"]),
            member_id=row["principal"],
            expires_at=expires_at,
            created_by=row["principal"],
            project_ids=row["project_ids"],
        )
        await connection.execute(SQL["mark_login_key"], key_id, row["api_key"], row["key_hash"])
        entry = audit.build_sign_in_entry(
            "api_key.login", key_id, {"client_name": row["client_name"], "address": browser.address}
        )
        await add_entry(connection, row["organisation"], entry, principal=row["principal"])
        return IssuedLoginKey(
            key_id=key_id,
            secret=secret,
            member_id=row["principal"],
            member_name=row["member_name"],
            organisation=row["organisation"],
            expires_at=expires_at,
        )

    async def _load_session(self, connection: Connection, secret: str) -> asyncpg.Record:
        row = await connection.fetchrow(SQL["session_of_secret"], hash_secret(secret))
        if row is None or row["is_login"]:
            raise BrowserSessionRequired
        return row


def _load(row: asyncpg.Record) -> DeviceAuthorization:
    return DeviceAuthorization(
        client_name=row["client_name"],
        address=row["address"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        status=row["status"],
    )
