"""Sends requests to model providers. This is the only module that puts a provider's credential into a request."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from footplate.domain.ports.harness import Endpoint
from footplate.proxy import provider_wire_formats
from footplate.proxy.hop_by_hop_headers import Headers
from footplate.proxy.provider_wire_formats import CredentialRemover

_TIMEOUT: Final = httpx2.Timeout(600, connect=10)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_QUERY: Final = re.compile(rb"[!-~]*")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that passed the checks, as it was received."""

    provider: str
    method: str
    path: str
    query: bytes
    headers: Headers
    token_header: bytes
    """The header that contained the token."""


@dataclass(frozen=True, slots=True)
class _Provider:
    url: str
    api_key: str = field(repr=False)
    remover: CredentialRemover = field(repr=False)


class ProviderClient:
    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        """`endpoints`: with the real credentials. Providers with an unknown wire format are ignored."""
        self._providers = {
            name: _Provider(
                (endpoint.base_url or provider_wire_formats.WIRE_FORMATS[name].default_url).rstrip("/"),
                endpoint.api_key,
                CredentialRemover(endpoint.api_key),
            )
            for name, endpoint in endpoints.items()
            if name in provider_wire_formats.WIRE_FORMATS
        }
        # No redirect is followed, no cookie is stored, and no proxy is taken from the environment.
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

    def credential_remover(self, provider: str) -> CredentialRemover:
        return self._providers[provider].remover

    async def send_request(
        self, model_request: ModelRequest, body: AsyncIterator[bytes] | bytes | None
    ) -> httpx2.Response:
        """Sends a request and returns the response. The caller reads and closes its body. Raises httpx2's errors."""
        provider = self._providers[model_request.provider]
        query = (
            f"?{model_request.query.decode('ascii')}"
            if model_request.query and _QUERY.fullmatch(model_request.query)
            else ""
        )
        headers = [
            *provider_wire_formats.filter_request_headers(model_request.headers),
            provider_wire_formats.credential_header(model_request.token_header, provider.api_key),
        ]
        # Built by hand, because the client would add its own User-Agent and Accept-Encoding. The caller decides both.
        request = httpx2.Request(
            model_request.method, f"{provider.url}{model_request.path}{query}", headers=headers, content=body
        )
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()
