"""Creates the API keys of the claim about roles: valid ones with each role, and some that are no longer valid."""

import asyncio
import itertools
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2

from bench.prove.figure import require
from bench.support.roles.published_table import PublishedTable

CUSTOM_ROLE: Final = "release_manager"
"""A role of an organisation's own, which permits nothing by itself."""
EFFECT_SECONDS: Final = 5.0
"""A change of a key or a member takes effect within this time."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    name: str
    secret: str
    permissions: frozenset[str] | None
    """What the key permits. None: it is not valid."""
    is_foreign: bool = False
    """Whether it belongs to another organisation."""
    is_restricted: bool = False
    """Whether it is restricted to a project that none of the shared sessions has."""

    def expected_refusal(self, required: frozenset[str]) -> int | None:
        """Returns the status of a request that needs one of these permissions; None if it is served."""
        if not required:
            return None
        if self.permissions is None:
            return httpx2.codes.UNAUTHORIZED
        return None if required & self.permissions else httpx2.codes.FORBIDDEN


@dataclass(slots=True)
class KeyIssuer:
    """Creates members and keys as an administrator, and remembers every secret."""

    http: httpx2.AsyncClient
    secrets: list[str] = field(default_factory=list)

    async def create_member(self, *roles: str) -> str:
        body = {"name": f"m-{secrets.token_hex(6)}", "roles": roles}
        return str((await self._post("/v1/members", body))["id"])

    async def create_key(self, member_id: str, *roles: str, **fields: Any) -> tuple[str, str]:
        """Creates a key, and returns its id and secret. `fields`: further ones, for example `expires_at`."""
        body = {"name": f"k-{secrets.token_hex(6)}", "member_id": member_id, "roles": roles, **fields}
        created = await self._post("/v1/api_keys", body)
        self.secrets.append(created["secret"])
        return created["id"], created["secret"]

    async def revoke(self, key_id: str) -> None:
        await self._post(f"/v1/api_keys/{key_id}/revoke")

    async def rotate(self, key_id: str) -> None:
        self.secrets.append((await self._post(f"/v1/api_keys/{key_id}/rotate"))["secret"])

    async def update_member(self, member_id: str, **fields: Any) -> None:
        await self._post(f"/v1/members/{member_id}", fields)

    async def _post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = await self.http.post(path, json=body)
        require(holds=response.is_success, otherwise=f"POST {path}: {response.text}")
        return dict(response.json())


async def issue_role_keys(issuer: KeyIssuer, table: PublishedTable, roles: Sequence[str]) -> list[IssuedKey]:
    """Creates a key for each role, one with a role of the organisation's own, and one with more roles than its
    member.
    """
    keys = []
    for role in (*roles, CUSTOM_ROLE):
        _, secret = await issuer.create_key(await issuer.create_member(role), role)
        keys.append(IssuedKey(role, secret, table.roles.get(role, frozenset())))
    _, secret = await issuer.create_key(await issuer.create_member("viewer"), "viewer", "admin")
    return [*keys, IssuedKey("admin key of a viewer", secret, table.roles["viewer"])]


async def issue_restricted_key(issuer: KeyIssuer, table: PublishedTable, project_id: str) -> IssuedKey:
    _, secret = await issuer.create_key(await issuer.create_member("admin"), "admin", project_ids=[project_id])
    return IssuedKey("restricted", secret, table.roles["admin"], is_restricted=True)


async def issue_invalid_keys(issuer: KeyIssuer, base_urls: Sequence[str]) -> list[IssuedKey]:
    """Creates keys that work on every replica, and then makes them invalid: expired, revoked, replaced, disabled."""
    member_id, disabled_id = [await issuer.create_member("admin") for _ in range(2)]
    expires_at = datetime.now(UTC) + timedelta(seconds=EFFECT_SECONDS)
    _, expired = await issuer.create_key(member_id, "admin", expires_at=expires_at.isoformat())
    revoked_id, revoked = await issuer.create_key(member_id, "admin")
    rotated_id, rotated = await issuer.create_key(member_id, "admin")
    _, disabled = await issuer.create_key(disabled_id, "admin")
    named = {"expired": expired, "revoked": revoked, "rotated": rotated, "of a disabled member": disabled}
    for (name, secret), base_url in itertools.product(named.items(), base_urls):
        async with httpx2.AsyncClient(base_url=base_url, trust_env=False) as http:
            response = await http.get("/v1/agents", headers={"authorization": f"Bearer {secret}"})
            require(holds=response.is_success, otherwise=f"the key {name} did not work before: {response.text}")
    await issuer.revoke(revoked_id)
    await issuer.rotate(rotated_id)
    await issuer.update_member(disabled_id, disabled=True)
    await asyncio.sleep(max((expires_at - datetime.now(UTC)).total_seconds(), 0) + EFFECT_SECONDS)
    named["unknown"] = f"fp_{secrets.token_urlsafe(32)}"
    return [IssuedKey(name, secret, None) for name, secret in named.items()]
