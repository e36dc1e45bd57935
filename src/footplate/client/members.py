"""Client methods for members (people and service accounts) and API keys. They need a key with the role `admin`."""

from typing import Any

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import ApiKey, Member
from footplate.client.transport import Transport

_MEMBERS = "/v1/members"
_KEYS = "/v1/api_keys"


class Members:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, **fields: Any) -> Member:
        return Member.model_validate(await self._transport.post(_MEMBERS, drop_none(**fields)))

    async def update(self, member_id: str, **fields: Any) -> Member:
        """Changes `roles` or `disabled`. A field that is None is unchanged."""
        return Member.model_validate(await self._transport.post(f"{_MEMBERS}/{member_id}", drop_none(**fields)))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Member]:
        return Pages(self._transport, _MEMBERS, Member, {"limit": limit, "include_archived": include_archived})


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
