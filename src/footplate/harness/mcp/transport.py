"""HTTP to one MCP server: to addresses that were checked, never more of an answer than a worker can hold.

Whoever makes an agent names its servers, so an address may lead into the operator's own network, and what answers may
be hostile. Nothing of this process goes along: no cookie, no credentials, no proxy of its environment.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Final

import httpx2

from footplate.domain import environments
from footplate.domain.addresses import Reach
from footplate.domain.environments import EnvironmentConfig
from footplate.harness import reaching

LARGEST: Final = 8 << 20
"""Bytes of one answer, and of all answers to one question: a server may break off a stream and begin it again."""
_MOST_GRANTED: Final = 4 * LARGEST
"""For questions that are asked at once."""
_CONNECT: Final = 10.0
_HEADERS: Final = {"accept-encoding": "identity"}


class NotAllowed(Exception):
    """The server may not be reached from this environment, or by this worker."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """For one server: its connections are kept, and those of two names with one address must not be mixed up."""

    def __init__(self, reach: Reach, environment: EnvironmentConfig, *, tls: ssl.SSLContext | None = None) -> None:
        """Certificates are held against the usual authorities unless `tls` names others."""
        self._reach = reach
        self._environment = environment
        self._inner = httpx2.AsyncHTTPTransport(
            verify=tls or True, trust_env=False, limits=httpx2.Limits(max_connections=10, max_keepalive_connections=4)
        )
        self.refused: NotAllowed | None = None
        """Why nothing was asked."""
        self.status = 0
        """Of the last answer."""
        self._left = LARGEST
        self.exhausted = asyncio.Event()
        """The server has said more than it was asked for: nothing more is read of it."""

    def grant_answer(self) -> None:
        """A question is about to be asked: the server may say so much more."""
        self._left = min(self._left + LARGEST, _MOST_GRANTED)

    def spend(self, count: int, request: httpx2.Request) -> None:
        self._left -= count
        if self._left < 0:
            self.exhausted.set()
        if self.exhausted.is_set():
            raise httpx2.ReadError(f"The answers to one question have more than {LARGEST} bytes.", request=request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.spend(0, request)
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or reaching.PORTS[request.url.scheme]
        if not environments.reaches_mcp_server(self._environment, host, port):
            raise self._refuse(
                f"the session's environment does not let it reach {host}:{port}. Its networking can allow it with "
                "allow_mcp_servers, or by the name of the host."
            )
        try:
            *others, last = await reaching.addresses(self._reach, host, port)
        except reaching.NoAddress as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except reaching.Internal as error:
            raise self._refuse(
                f"{error}. The operator of this server can allow it with FOOTPLATE_MCP_ALLOW."
            ) from error
        # Only one that nobody answered at is followed by another: a call must not be made twice.
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
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in {"", "identity"}:
            await response.aclose()
            raise httpx2.DecodingError(f"The answer is packed as {packed!r}, which was not asked for.", request=request)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(response, request, self.spend),
            extensions=response.extensions,
        )

    def _refuse(self, why: str) -> NotAllowed:
        self.refused = NotAllowed(why)
        return self.refused

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(
        self, response: httpx2.Response, request: httpx2.Request, spend: Callable[[int, httpx2.Request], None]
    ) -> None:
        self._response = response
        self._request = request
        self._spend = spend

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LARGEST
        async for piece in self._response.aiter_raw():
            left -= len(piece)
            self._spend(len(piece), self._request)
            if left < 0:
                raise httpx2.ReadError(f"The answer has more than {LARGEST} bytes.", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def client(transport: CheckedTransport, seconds: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        headers=_HEADERS,
        timeout=httpx2.Timeout(seconds, connect=min(_CONNECT, seconds)),
    )
