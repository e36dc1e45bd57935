"""A server that is asked by HTTP, from the worker: only at hosts that the operator named, signed by Standard Webhooks.

The worker stands inside the operator's network, and whoever writes a hook need not. So nothing is followed, nothing of
this process goes along, and what answers is bounded. Everything but a 2xx with JSON, or with nothing, is no word.
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
from footplate.domain.hooks import HookAccess
from footplate.domain.json import JsonObject
from footplate.gate.hooks import Hook
from footplate.gate.words import LONGEST_ANSWER, TOO_MUCH, Word, read_json

_ID: Final = "hook"
_CONNECT: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": f"Footplate/{version('footplate')}",
}


class HttpAsker:
    def __init__(self, access: HookAccess) -> None:
        self._access = access

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        """Made when it is first needed; it keeps nothing from one request to the next."""
        return httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
            timeout=httpx2.Timeout(None, connect=_CONNECT),
        )

    async def ask(self, hook: Hook, told: JsonObject) -> Word:
        if (refused := not_allowed(self._access, hook.what)) is not None:
            return Word(failure=refused)
        body = json.dumps(told)
        try:
            async with asyncio.timeout(hook.seconds):
                return await self._asked(hook.what, body)
        except TimeoutError:
            return Word(failure=f"It did not answer within {hook.seconds:g} s.")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            return Word(failure=f"It could not be asked: {str(error) or type(error).__name__}.")

    async def _asked(self, url: str, body: str) -> Word:
        request = self._client.build_request("POST", url, content=body, headers={**_HEADERS, **self._signature(body)})
        async with aclosing(await self._client.send(request, stream=True)) as response:
            if not response.is_success:
                return Word(failure=f"It answered {response.status_code}, and not as a hook does.")
            if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
                return Word(failure="Its answer is packed, which was not asked for.")
            data = bytearray()
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > LONGEST_ANSWER:
                    return Word(failure=TOO_MUCH)
        return read_json(bytes(data))

    def _signature(self, body: str) -> dict[str, str]:
        message, now = ids.new_id(_ID), datetime.now(UTC)
        return {
            "webhook-id": message,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(self._access.secret or "").sign(message, now, body),
        }


def not_allowed(access: HookAccess, url: str) -> str | None:
    """Why it is not asked."""
    try:
        found = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        return f"{url!r} is no URL: {error}."
    if found.scheme not in _PORTS or not found.host or found.userinfo:
        return "Its URL is to be written as https://host/path, and without a password."
    if not access.hosts.permits(found.host, found.port or _PORTS[found.scheme]):
        there = "" if access.hosts.hosts else ", of which there are none"
        return (
            f"{found.host} is not among the hosts at which hooks may be asked here{there}. The operator of this server "
            "allows one with FOOTPLATE_HOOK_HOSTS."
        )
    if access.secret is None:
        return "This worker has nothing to sign its question with: the operator sets FOOTPLATE_HOOK_SECRET."
    return None
