"""One GET: each hop's address is looked up once, checked, and connected to as it was checked.

Between a check and a connection by name the name could change its address; so the connection is made to the
address, and the name is only told to the server (`Host`) and held against its certificate. Nothing of this process
goes along: no cookie, no credentials, no proxy of its environment.
"""

import asyncio
import contextlib
import ssl
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Final

import httpx2

from footplate.domain.addresses import Address, Reach
from footplate.harness import reaching
from footplate.harness.native.failure import ToolFailure

MAX_REDIRECTS: Final = 5
_SCHEMES: Final = frozenset({"http", "https"})
_CONNECT: Final = 10.0
_GZIP_OR_ZLIB: Final = 47
_MAX_PORT: Final = 65_535
_HEADERS: Final = {
    "user-agent": f"Footplate/{version('footplate')}",
    "accept": "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1",
    "accept-language": "en, *;q=0.5",
    "accept-encoding": "gzip",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    url: str
    """Where the last redirect led."""
    status: int
    reason: str
    headers: Mapping[str, str]
    data: bytes
    cut: bool
    """There was more than may be read."""


class Downloads:
    def __init__(
        self,
        reach: Reach,
        *,
        max_bytes: int,
        max_seconds: float,
        tls: ssl.SSLContext | None = None,
        what: str = "web_fetch",
    ) -> None:
        """Certificates are held against the usual authorities unless `tls` names others. `what`: who asks."""
        self._what = what
        self._reach = reach
        self._tls = tls
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        """Made when it is first needed. Keeps nothing from one request to the next, connections included: those of two
        names with one address must not be mixed up.
        """
        return httpx2.AsyncClient(
            verify=self._tls or True,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
            timeout=httpx2.Timeout(self._max_seconds, connect=min(_CONNECT, self._max_seconds)),
        )

    async def page(self, url: str) -> Download:
        """Whatever the last of the redirects answers; `ToolFailure` when nothing does that may be reached."""
        try:
            async with asyncio.timeout(self._max_seconds):
                return await self._follow(_checked(url))
        except TimeoutError:
            raise ToolFailure(f"{url} took longer than {self._max_seconds:g} s.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, zlib.error) as error:
            raise ToolFailure(f"{url} could not be fetched: {_told(error)}.") from error

    async def trusted(self, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Download:
        """From an address that the operator chose, wherever it is. Raises what httpx2 raises, and `TimeoutError`."""
        request = self._client.build_request("GET", url, params=params, headers={**_HEADERS, **headers})
        async with asyncio.timeout(self._max_seconds):
            async with aclosing(await self._client.send(request, stream=True)) as response:
                return await self._read(response, url)

    async def _follow(self, url: httpx2.URL) -> Download:
        for _ in range(MAX_REDIRECTS + 1):
            async with aclosing(await self._send(url)) as response:
                if not response.has_redirect_location:
                    return await self._read(response, str(url))
                url = _checked(str(url.join(response.headers["location"])))
        raise ToolFailure(f"More than {MAX_REDIRECTS} redirects; the last one leads to {url}.")

    async def _send(self, url: httpx2.URL) -> httpx2.Response:
        """Try the addresses of the host one after the other, as any client does."""
        host = url.raw_host.decode("ascii")
        *others, last = [
            self._client.build_request(
                "GET",
                url.copy_with(host=str(address), fragment=None),
                headers={**_HEADERS, "host": url.netloc.decode("ascii")},
                extensions={"sni_hostname": host},
            )
            for address in await self._addresses(url, host)
        ]
        for request in others:
            with contextlib.suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._client.send(request, stream=True)
        return await self._client.send(last, stream=True)

    async def _addresses(self, url: httpx2.URL, host: str) -> list[Address]:
        try:
            return await reaching.addresses(self._reach, host, url.port or reaching.PORTS[url.scheme])
        except reaching.NoAddress as error:
            raise ToolFailure(str(error)) from error
        except reaching.Internal as error:
            raise ToolFailure(
                f"{error}: {self._what} does not go there. The operator of this server can allow it with "
                "FOOTPLATE_WEB_ALLOW."
            ) from error

    async def _read(self, response: httpx2.Response, url: str) -> Download:
        data = bytearray()
        async with aclosing(_decoded(response, self._max_bytes)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > self._max_bytes:
                    break
        return Download(
            url=url,
            status=response.status_code,
            reason=response.reason_phrase,
            headers=response.headers,
            data=bytes(data[: self._max_bytes]),
            cut=len(data) > self._max_bytes,
        )


async def _decoded(response: httpx2.Response, limit: int) -> AsyncGenerator[bytes, None]:
    """Unpacked here, never more at once than may be read: some kilobytes can unpack to gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        async for piece in response.aiter_raw():
            yield piece
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise ToolFailure(f"The answer is packed as {encoding!r}, which was not asked for and cannot be read.")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, limit + 1)


def _checked(url: str) -> httpx2.URL:
    parsed = httpx2.URL(url)
    if parsed.scheme not in _SCHEMES or not parsed.host:
        raise ToolFailure(f"{url!r} is no http or https address. Write it whole, such as https://example.com/page.")
    if parsed.userinfo:
        raise ToolFailure("An address with a user name or password in it is not fetched. Leave them out.")
    if parsed.port is not None and not 0 < parsed.port <= _MAX_PORT:
        raise ToolFailure(f"{url!r} has a port that does not exist.")
    return parsed


def _told(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
