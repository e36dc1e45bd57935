"""The outgoing side: the only place where a provider's credential is put into a request."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from footplate.domain.ports import Endpoint
from footplate.proxy import wire
from footplate.proxy.headers import Headers
from footplate.proxy.wire import Blotter

_TIMEOUT: Final = httpx2.Timeout(600, connect=10)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_QUERY: Final = re.compile(rb"[!-~]*")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that was let through, as it came."""

    provider: str
    method: str
    path: str
    query: bytes
    headers: Headers
    token_in: bytes
    """The header that its token came in."""


@dataclass(frozen=True, slots=True)
class _Provider:
    url: str
    api_key: str = field(repr=False)
    blotter: Blotter = field(repr=False)


class Upstream:
    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        """With the real credentials. A provider whose wire format is not known cannot be asked through the proxy."""
        self._providers = {
            name: _Provider(
                (endpoint.base_url or wire.WIRES[name].default_url).rstrip("/"),
                endpoint.api_key,
                Blotter(endpoint.api_key),
            )
            for name, endpoint in endpoints.items()
            if name in wire.WIRES
        }
        # Nothing is followed, kept or taken from this process's environment: not a redirect, a cookie or a proxy.
        self._client = httpx2.AsyncClient(
            timeout=_TIMEOUT,
            limits=_LIMITS,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    @property
    def providers(self) -> frozenset[str]:
        return frozenset(self._providers)

    def blotter(self, provider: str) -> Blotter:
        return self._providers[provider].blotter

    async def ask(self, ask: Ask, body: AsyncIterator[bytes] | bytes | None) -> httpx2.Response:
        """The answer's head; its body is still to be read, and to be closed. Raises what httpx2 raises."""
        provider = self._providers[ask.provider]
        query = f"?{ask.query.decode('ascii')}" if ask.query and _QUERY.fullmatch(ask.query) else ""
        headers = [*wire.asked_on(ask.headers), wire.credential(ask.token_in, provider.api_key)]
        # By itself the client would say what it is and what it can unpack; both are for the one behind to say.
        request = httpx2.Request(ask.method, f"{provider.url}{ask.path}{query}", headers=headers, content=body)
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()
