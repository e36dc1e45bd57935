"""HTTP transport to one MCP server: connects only to checked addresses, and limits the size of responses.

The author of an agent chooses the servers. A URL may therefore point into the operator's network, and a server may be
hostile. Requests contain no cookies, credentials or proxy settings of the worker process.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Final

import httpx2

from footplate.domain.agents import environment_config
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.network.address_policy import AddressPolicy
from footplate.harness import address_check

MAX_RESPONSE_BYTES: Final = 8 << 20
"""Maximum bytes of one response, and of all responses to one request: a server may close a stream and resume it."""
_MAX_GRANTED_BYTES: Final = 4 * MAX_RESPONSE_BYTES
"""The limit for concurrent requests together."""
_CONNECT_SECONDS: Final = 10.0
_HEADERS: Final = {"accept-encoding": "identity"}


class ServerForbidden(Exception):
    """The environment's network rules or the worker's address policy forbid this server."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """A transport for one server only: pooled connections of two hosts with the same address must not be mixed up."""

    def __init__(
        self, policy: AddressPolicy, environment: EnvironmentConfig, *, tls: ssl.SSLContext | None = None
    ) -> None:
        """`tls`: certificate authorities to use instead of the default ones."""
        self._policy = policy
        self._environment = environment
        self._inner = httpx2.AsyncHTTPTransport(
            verify=tls or True, trust_env=False, limits=httpx2.Limits(max_connections=10, max_keepalive_connections=4)
        )
        self.refusal: ServerForbidden | None = None
        """Why no request was sent."""
        self.status = 0
        """HTTP status of the last response."""
        self._remaining_bytes = MAX_RESPONSE_BYTES
        self.exhausted = asyncio.Event()
        """Set when the server has sent more than its limit. Nothing more is read from it."""

    def grant_response(self) -> None:
        """Raises the limit for one more request. Call this before each request."""
        self._remaining_bytes = min(self._remaining_bytes + MAX_RESPONSE_BYTES, _MAX_GRANTED_BYTES)

    def spend_bytes(self, count: int, request: httpx2.Request) -> None:
        self._remaining_bytes -= count
        if self._remaining_bytes < 0:
            self.exhausted.set()
        if self.exhausted.is_set():
            raise httpx2.ReadError(
                f"The responses to one request are larger than {MAX_RESPONSE_BYTES} bytes.", request=request
            )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.spend_bytes(0, request)
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or address_check.PORTS[request.url.scheme]
        if not environment_config.may_call_mcp_server(self._environment, host, port):
            raise self._refuse(
                f"the session's environment does not allow connections to {host}:{port}. Set allow_mcp_servers in the "
                "environment's networking, or add the host to its allowed hosts."
            )
        try:
            *others, last = await address_check.resolve_allowed_addresses(self._policy, host, port)
        except address_check.UnresolvableHost as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except address_check.ForbiddenAddress as error:
            raise self._refuse(
                f"{error}. The operator of this server can allow it with FOOTPLATE_MCP_ALLOW."
            ) from error
        # The next address is tried only if the connection failed, because a call must not be sent twice.
        for address in others:
            with contextlib.suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._send(request, str(address), host)
        return await self._send(request, str(last), host)

    async def _send(self, request: httpx2.Request, address: str, host: str) -> httpx2.Response:
        response = await self._inner.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address, fragment=None),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
        )
        self.status = response.status_code
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"", "identity"}:
            await response.aclose()
            raise httpx2.DecodingError(
                f"The response has the encoding {encoding!r}, which was not requested.", request=request
            )
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response, request, self.spend_bytes),
            extensions=response.extensions,
        )

    def _refuse(self, reason: str) -> ServerForbidden:
        self.refusal = ServerForbidden(reason)
        return self.refusal

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(
        self, response: httpx2.Response, request: httpx2.Request, spend: Callable[[int, httpx2.Request], None]
    ) -> None:
        self._response = response
        self._request = request
        self._spend = spend

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = MAX_RESPONSE_BYTES
        async for piece in self._response.aiter_raw():
            remaining -= len(piece)
            self._spend(len(piece), self._request)
            if remaining < 0:
                raise httpx2.ReadError(
                    f"The response is larger than {MAX_RESPONSE_BYTES} bytes.", request=self._request
                )
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def create_client(transport: CheckedTransport, seconds: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        headers=_HEADERS,
        timeout=httpx2.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds)),
    )
