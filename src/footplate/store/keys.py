"""API keys: only their hash is kept. A secret is long and random, so a plain SHA-256 is enough."""

import hashlib
import secrets
import time
from typing import Final

from footplate.domain import ids
from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations import check_new_name, directory_of
from footplate.domain.principals import Principal
from footplate.store.database import SQL, Database

_PREFIX: Final = "fp_"
_REMEMBERED: Final = 10.0
_MOST: Final = 10_000


class Keys:
    def __init__(self, database: Database) -> None:
        self._database = database
        # A revoked key works for at most so many seconds longer: the price of not asking at each request.
        self._known: dict[bytes, tuple[float, Principal]] = {}

    async def authenticate(self, secret: str) -> Principal:
        digest = _hash(secret)
        known = self._known.get(digest)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        row = await self._database.fetchrow("key_principal", digest)
        if row is None:
            self._known.pop(digest, None)
            raise Unauthenticated(
                "The API key is not known.",
                help_text="Send a key made by `footplate api-keys create` as `Authorization: Bearer …` or `x-api-key`.",
            )
        directory_of(row["organisation"])
        principal = Principal(row["organisation"], row["id"], row["name"], frozenset(row["roles"]))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[digest] = (time.monotonic() + _REMEMBERED, principal)
        return principal

    async def create(self, organisation: str, name: str, roles: list[str]) -> str:
        """Returns the secret; it cannot be read again."""
        secret = _PREFIX + secrets.token_urlsafe(32)
        await self.register(organisation, name, roles, secret)
        return secret

    async def register(self, organisation: str, name: str, roles: list[str], secret: str) -> None:
        check_new_name(organisation)
        async with self._database.transaction() as connection:
            await connection.execute(SQL["insert_organisation"], organisation, organisation)
            await connection.execute(
                SQL["insert_key"], ids.new_id(ids.API_KEY), organisation, name, _hash(secret), roles
            )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
