"""Sends requests to model providers. This is the only module that puts a provider's credential into a request."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from footplate.domain.agents.model_connections import PROVIDERS, ModelProvider, WireFormatName
from footplate.domain.ports.harness import Endpoint
from footplate.proxy import bedrock_signing, provider_wire_formats
from footplate.proxy.hop_by_hop_headers import Headers
from footplate.proxy.provider_wire_formats import CredentialRemover

_TIMEOUT: Final = httpx2.Timeout(600, connect=10)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_QUERY: Final = re.compile(rb"[!-~]*")


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection with its real credential."""

    name: str
    provider: str
    url: str
    endpoint: Endpoint = field(repr=False)
    remover: CredentialRemover = field(repr=False)

    @property
    def facts(self) -> ModelProvider:
        return PROVIDERS[self.provider]

    @property
    def wire_format(self) -> WireFormatName:
        return self.facts.wire_format


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that passed the checks, as it was received."""

    connection: Connection
    method: str
    path: str
    query: bytes
    headers: Headers
    token_header: bytes
    """The header that contained the token."""


class ProviderClient:
    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        organisations: Mapping[str, Mapping[str, Endpoint]] | None = None,
    ) -> None:
        """`endpoints`: with the real credentials, by connection. `organisations`: those of one organisation."""
        self._shared = _create_connections(endpoints)
        self._own = {organisation: _create_connections(own) for organisation, own in (organisations or {}).items()}
        # No redirect is followed, no cookie is stored, and no proxy is taken from the environment.
        self._client = httpx2.AsyncClient(
            timeout=_TIMEOUT,
            limits=_LIMITS,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def list_connections(self, organisation: str | None) -> Mapping[str, Connection]:
        """The connections that all organisations share, and those of this one."""
        own = self._own.get(organisation, {}) if organisation is not None else {}
        return {**self._shared, **own}

    def find_connection(self, organisation: str | None, name: str) -> Connection | None:
        own = self._own.get(organisation, {}) if organisation is not None else {}
        return own.get(name) or self._shared.get(name)

    async def send_request(
        self, model_request: ModelRequest, body: AsyncIterator[bytes] | bytes | None
    ) -> httpx2.Response:
        """Sends a request and returns the response. The caller reads and closes its body. Raises httpx2's errors."""
        connection = model_request.connection
        query = (
            f"?{model_request.query.decode('ascii')}"
            if model_request.query and _QUERY.fullmatch(model_request.query)
            else ""
        )
        url = f"{connection.url}{model_request.path}{query}"
        headers = provider_wire_formats.filter_request_headers(model_request.headers)
        if connection.endpoint.access_key_id is not None:
            body = await bedrock_signing.read_body(body)
            headers += await asyncio.to_thread(
                bedrock_signing.sign, connection.endpoint, model_request.method, url, body
            )
        else:
            headers += provider_wire_formats.credential_headers(
                connection.facts, model_request.token_header, connection.endpoint.api_key
            )
        # Built by hand, because the client would add its own User-Agent and Accept-Encoding. The caller decides both.
        request = httpx2.Request(model_request.method, url, headers=headers, content=body)
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()


def _create_connections(endpoints: Mapping[str, Endpoint]) -> dict[str, Connection]:
    return {name: _create_connection(name, endpoint) for name, endpoint in endpoints.items()}


def _create_connection(name: str, endpoint: Endpoint) -> Connection:
    provider = endpoint.provider or name
    url = endpoint.base_url or PROVIDERS[provider].default_url
    if url is None and endpoint.region is not None:
        url = bedrock_signing.default_url(endpoint.region)
    if url is None:
        raise ValueError(f"The connection {name!r} needs a base URL.")
    return Connection(name, provider, url.rstrip("/"), endpoint, CredentialRemover(endpoint.api_key))
