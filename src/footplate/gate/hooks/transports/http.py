"""Sends HTTP hooks from the worker to hosts that the operator allows, signed according to Standard Webhooks.

The worker is inside the operator's network, but the author of a hook may be outside. Redirects are therefore not
followed, the request contains nothing from the worker's environment variables, and the response size is limited. A
response is a failure unless it has a 2xx status and a JSON or empty body.
"""

import asyncio
import json
from contextlib import aclosing
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import Final

import httpx2
from standardwebhooks import Webhook

from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookAccess
from footplate.gate.hooks.hook_config import Hook
from footplate.gate.hooks.hook_output import MAX_OUTPUT_BYTES, OUTPUT_TOO_LARGE, HookOutput, parse_json_output

_MESSAGE_ID_PREFIX: Final = "hook"
_CONNECT_TIMEOUT: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": f"Footplate/{version('footplate')}",
}


class HttpHookTransport:
    def __init__(self, access: HookAccess) -> None:
        self._access = access

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        """The HTTP client, created at first use. It keeps no connections between requests."""
        return httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT),
        )

    async def run_http_hook(self, hook: Hook, payload: JsonObject) -> HookOutput:
        if (refusal := find_url_problem(self._access, hook.target)) is not None:
            return HookOutput(failure=refusal)
        body = json.dumps(payload)
        try:
            async with asyncio.timeout(hook.timeout_seconds):
                return await self._send_request(hook.target, body)
        except TimeoutError:
            return HookOutput(failure=f"The hook did not respond within {hook.timeout_seconds:g} s.")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            return HookOutput(failure=f"The request to the hook failed: {str(error) or type(error).__name__}.")

    async def _send_request(self, url: str, body: str) -> HookOutput:
        request = self._client.build_request("POST", url, content=body, headers={**_HEADERS, **self._signature(body)})
        async with aclosing(await self._client.send(request, stream=True)) as response:
            if not response.is_success:
                return HookOutput(failure=f"The hook responded with HTTP status {response.status_code} instead of 2xx.")
            if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
                return HookOutput(
                    failure="The hook's response is compressed, but the request does not accept compression."
                )
            data = bytearray()
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > MAX_OUTPUT_BYTES:
                    return HookOutput(failure=OUTPUT_TOO_LARGE)
        return parse_json_output(bytes(data))

    def _signature(self, body: str) -> dict[str, str]:
        message, now = ids.new_id(_MESSAGE_ID_PREFIX), datetime.now(UTC)
        return {
            "webhook-id": message,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(self._access.secret or "").sign(message, now, body),
        }


def find_url_problem(access: HookAccess, url: str) -> str | None:
    """Return why a hook may not send requests to this URL, or None if it may."""
    try:
        parsed_url = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        return f"{url!r} is not a valid URL: {error}."
    if parsed_url.scheme not in _PORTS or not parsed_url.host or parsed_url.userinfo:
        return "The URL of a hook must have the form https://host/path, without a user name or password."
    if not access.hosts.permits(parsed_url.host, parsed_url.port or _PORTS[parsed_url.scheme]):
        empty_note = "" if access.hosts.hosts else ", which is empty"
        return (
            f"{parsed_url.host} is not in the list of allowed hook hosts{empty_note}. "
            "The operator of this server can add it to FOOTPLATE_HOOK_HOSTS."
        )
    if access.secret is None:
        return "This worker has no secret for signing hook requests. The operator must set FOOTPLATE_HOOK_SECRET."
    return None
