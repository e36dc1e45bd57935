"""Creates and authenticates API keys.

Only SHA-256 hashes are stored, which is safe because the secrets are long and random.
"""

import hashlib
import secrets
import time
from typing import Final

from footplate.domain import ids
from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations.organisation_names import check_new_name, directory_name
from footplate.domain.organisations.principals import Principal
from footplate.store.database import SQL, Database

_PREFIX: Final = "fp_"
_CACHE_SECONDS: Final = 10.0
_MAX_CACHED_KEYS: Final = 10_000


class ApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database
        # A cache: a revoked key may work for up to `_CACHE_SECONDS` longer, but most requests need no query.
        self._cache: dict[bytes, tuple[float, Principal]] = {}

    async def authenticate(self, secret: str) -> Principal:
        digest = _hash(secret)
        cached = self._cache.get(digest)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        row = await self._database.fetchrow("key_principal", digest)
        if row is None:
            self._cache.pop(digest, None)
            raise Unauthenticated(
                "The API key is not valid.",
                help_text="Create a key with `footplate api-keys create`, and send it as `Authorization: Bearer …` or "
                "`x-api-key`.",
            )
        directory_name(row["organisation"])
        principal = Principal(row["organisation"], row["id"], row["name"], frozenset(row["roles"]))
        if len(self._cache) >= _MAX_CACHED_KEYS:
            self._cache.clear()
        self._cache[digest] = (time.monotonic() + _CACHE_SECONDS, principal)
        return principal

    async def create_key(self, organisation: str, name: str, roles: list[str]) -> str:
        """Creates a key and returns its secret, which cannot be read again."""
        secret = _PREFIX + secrets.token_urlsafe(32)
        await self.register_key(organisation, name, roles, secret)
        return secret

    async def register_key(self, organisation: str, name: str, roles: list[str], secret: str) -> None:
        check_new_name(organisation)
        async with self._database.transaction() as connection:
            await connection.execute(SQL["insert_organisation"], organisation, organisation)
            await connection.execute(
                SQL["insert_key"], ids.new_id(ids.API_KEY), organisation, name, _hash(secret), roles
            )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
