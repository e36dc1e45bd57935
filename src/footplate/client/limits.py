"""Client methods for the limits of the organisation and its members."""

import builtins

from footplate.client.response_models import Limit
from footplate.client.transport import Transport

_PATH = "/v1/limits"


class Limits:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> builtins.list[Limit]:
        return [Limit.model_validate(each) for each in (await self._transport.get(_PATH))["data"]]

    async def set(
        self, name: str, value: int | None, *, scope: str = "organisation", member_id: str | None = None
    ) -> Limit:
        """Sets a limit, or removes it if `value` is None. Needs a key with the role `admin`."""
        fields = {"name": name, "value": value, "scope": "member" if member_id else scope, "member_id": member_id}
        return Limit.model_validate(await self._transport.post(_PATH, fields))
