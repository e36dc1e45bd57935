"""Client methods for members (people and service accounts), teams, API keys and limits.

They need a key with the role `admin`, except those that read teams and limits.
"""

import builtins
from collections.abc import Sequence
from typing import Any

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import ApiKey, Limit, Member, Team
from footplate.client.transport import Transport

_MEMBERS = "/v1/members"
_TEAMS = "/v1/teams"
_KEYS = "/v1/api_keys"
_LIMITS = "/v1/limits"


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
