"""Client methods for members (people and service accounts), teams, API keys and limits, and for signing in.

The first ones need a key with the role `admin`, except those that read teams and limits.
"""

import asyncio
import builtins
import json
from collections.abc import Sequence
from typing import Any, Final

from footplate.client.errors import Forbidden, InvalidRequest
from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import (
    ApiKey,
    DeviceAuthorization,
    DeviceKey,
    Limit,
    Member,
    OneTimeLink,
    Principal,
    Team,
)
from footplate.client.transport import PATIENCE, TIMEOUT, Transport

_MEMBERS = "/v1/members"
_TEAMS = "/v1/teams"
_KEYS = "/v1/api_keys"
_LIMITS = "/v1/limits"
_ME: Final = "/v1/me"
_DEVICES: Final = "/v1/device_authorizations"
_CODES: Final = "/v1/browser_sessions/one_time_codes"
_WAITING_CODES: Final = frozenset({"authorization_pending", "slow_down"})


class Members:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, **fields: Any) -> Member:
        return Member.model_validate(await self._transport.post(_MEMBERS, drop_none(**fields)))

    async def update(self, member_id: str, **fields: Any) -> Member:
        """Changes `roles` or `disabled`. With `disabled=True`, a `successor_id` hands over the member's work. A field
        that is None is unchanged.
        """
        return Member.model_validate(await self._transport.post(f"{_MEMBERS}/{member_id}", drop_none(**fields)))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Member]:
        return Pages(self._transport, _MEMBERS, Member, {"limit": limit, "include_archived": include_archived})


class Teams:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, member_ids: Sequence[str] = ()) -> Team:
        body = {"name": name, "member_ids": [*member_ids]}
        return Team.model_validate(await self._transport.post(_TEAMS, body))

    async def retrieve(self, team_id: str) -> Team:
        return Team.model_validate(await self._transport.get(f"{_TEAMS}/{team_id}"))

    async def update(self, team_id: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Team:
        """Adds and removes members, by their ids."""
        body = {"add_member_ids": [*add], "remove_member_ids": [*remove]}
        return Team.model_validate(await self._transport.post(f"{_TEAMS}/{team_id}", body))

    def list(self, *, limit: int | None = None) -> Pages[Team]:
        return Pages(self._transport, _TEAMS, Team, {"limit": limit})


class ApiKeys:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, **fields: Any) -> ApiKey:
        """Creates a key. The result contains its `secret`, which cannot be read again."""
        return ApiKey.model_validate(await self._transport.post(_KEYS, drop_none(**fields)))

    async def revoke(self, key_id: str) -> ApiKey:
        return ApiKey.model_validate(await self._transport.post(f"{_KEYS}/{key_id}/revoke"))

    async def rotate(self, key_id: str) -> ApiKey:
        """Replaces the secret. The result contains the new one."""
        return ApiKey.model_validate(await self._transport.post(f"{_KEYS}/{key_id}/rotate"))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[ApiKey]:
        return Pages(self._transport, _KEYS, ApiKey, {"limit": limit, "include_archived": include_archived})


class Limits:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> builtins.list[Limit]:
        return [Limit.model_validate(each) for each in (await self._transport.get(_LIMITS))["data"]]

    async def set(
        self, name: str, value: int | None, *, scope: str = "organisation", member_id: str | None = None
    ) -> Limit:
        """Sets a limit, or removes it if `value` is None. Needs a key with the role `admin`."""
        fields = {"name": name, "value": value, "scope": "member" if member_id else scope, "member_id": member_id}
        return Limit.model_validate(await self._transport.post(_LIMITS, fields))


class SignIn:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def retrieve_principal(self) -> Principal:
        return Principal.model_validate(await self._transport.get(_ME))

    async def revoke_own_key(self) -> ApiKey:
        """Revokes the API key of this client."""
        return ApiKey.model_validate(await self._transport.delete(f"{_ME}/api_key"))

    async def create_link(self) -> OneTimeLink:
        """Creates a link that signs one browser on the server's machine in, once."""
        return OneTimeLink.model_validate(await self._transport.post(_CODES))


class DeviceSignIn:
    """Signs a program in that has no API key yet. A person approves it in the dashboard."""

    def __init__(self, base_url: str) -> None:
        self._transport = Transport(base_url, "", timeout=TIMEOUT, patience=PATIENCE)
        self.base_url = self._transport.base_url

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def start(self, client_name: str) -> DeviceAuthorization:
        return DeviceAuthorization.model_validate(await self._post(_DEVICES, {"client_name": client_name}))

    async def wait_for_key(self, started: DeviceAuthorization) -> DeviceKey:
        """Waits until a person has approved the program. Raises `ApiError` if it was denied or has expired."""
        wait = float(started.interval)
        while True:
            await asyncio.sleep(wait)
            try:
                return DeviceKey.model_validate(
                    await self._post(f"{_DEVICES}/token", {"device_code": started.device_code})
                )
            except (InvalidRequest, Forbidden) as error:
                if error.code not in _WAITING_CODES:
                    raise
                wait += started.interval if error.code == "slow_down" else 0

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(body).encode()
        return await self._transport.post_signed(path, content, {"content-type": "application/json"})
