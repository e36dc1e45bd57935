"""Client methods for signing in: who the caller is, links for the browser, and keys for programs that have none."""

import asyncio
import json
from typing import Any, Final

from footplate.client.errors import Forbidden, InvalidRequest
from footplate.client.response_models import ApiKey, DeviceAuthorization, DeviceKey, OneTimeLink, Principal
from footplate.client.transport import PATIENCE, TIMEOUT, Transport

_ME: Final = "/v1/me"
_DEVICES: Final = "/v1/device_authorizations"
_CODES: Final = "/v1/browser_sessions/one_time_codes"
_WAITING_CODES: Final = frozenset({"authorization_pending", "slow_down"})


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
