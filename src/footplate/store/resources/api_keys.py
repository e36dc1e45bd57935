"""Authenticates API keys and the secrets of browser sessions, and creates keys without the API, for example the first
one.
"""

import hmac
import time
from datetime import datetime, timedelta
from typing import Final

from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations.organisation_names import check_new_name, directory_name
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import restrict_roles
from footplate.domain.organisations.sign_in import is_session_secret
from footplate.store.database import SQL, Database
from footplate.store.resources.members import hash_secret, insert_key

CACHE_SECONDS: Final = 2.0
"""A key that was revoked, has expired or lost its owner may work for this time longer. Most requests need no query."""
DEFAULT_IDLE: Final = timedelta(hours=12)
"""A browser session that is not used for this time ends."""
_MAX_CACHED_KEYS: Final = 10_000


class ApiKeys:
    def __init__(self, database: Database, *, session_idle: timedelta = DEFAULT_IDLE) -> None:
        self._database = database
        self._session_idle = session_idle
        self._cache: dict[bytes, tuple[float, Principal]] = {}

    async def authenticate(self, secret: str) -> Principal:
        digest = hash_secret(secret)
        cached = self._cache.get(digest)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        is_session = is_session_secret(secret)
        if is_session:
            row = await self._database.fetchrow("browser_session_principal", digest, self._session_idle)
        else:
            row = await self._database.fetchrow("key_principal", digest)
        if row is None or not hmac.compare_digest(row["secret_hash"], digest):
            self._cache.pop(digest, None)
            if is_session:
                raise Unauthenticated("Your browser session has ended.", help_text="Sign in again.")
            raise Unauthenticated(
                "The API key is not valid: it does not exist, is revoked or has expired, or its owner is disabled.",
                help_text="Create a key with `footplate api-keys create`, and send it as `Authorization: Bearer …` or "
                "`x-api-key`.",
            )
        directory_name(row["organisation"])
        roles = restrict_roles(row["key_roles"], row["roles"])
        projects = None if row["project_ids"] is None else frozenset(row["project_ids"])
        principal = Principal(row["organisation"], row["id"], row["name"], roles, frozenset(row["team_ids"]), projects)
        if len(self._cache) >= _MAX_CACHED_KEYS:
            self._cache.clear()
        self._cache[digest] = (time.monotonic() + CACHE_SECONDS, principal)
        return principal

    def forget(self, secret: str) -> None:
        """Removes a secret from the cache, so that its end takes effect in this process at once."""
        self._cache.pop(hash_secret(secret), None)

    async def create_key(
        self, organisation: str, name: str, roles: list[str], *, expires_at: datetime | None = None
    ) -> str:
        """Creates a key with a service account of its own, and returns its secret, which cannot be read again."""
        check_new_name(organisation)
        async with self._database.transaction() as connection:
            await connection.execute(SQL["insert_organisation"], organisation, organisation)
            _, secret = await insert_key(connection, organisation, name, roles, expires_at=expires_at)
        return secret
