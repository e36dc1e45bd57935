"""Downloads a URL with GET, and checks the address of the host and of every redirect.

Each host name is resolved once, and the connection is made to the checked address. A connection by name could reach
another address after the check. Requests contain no cookies, credentials or proxy settings of the worker process.
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

from footplate.domain.network.address_policy import Address, AddressPolicy
from footplate.harness import address_check
from footplate.harness.native.tool_failure_error import ToolFailure

MAX_REDIRECTS: Final = 5
_SCHEMES: Final = frozenset({"http", "https"})
_CONNECT_SECONDS: Final = 10.0
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
    """The final URL, after redirects."""
    status: int
    reason: str
    headers: Mapping[str, str]
    data: bytes
    is_truncated: bool
    """Whether the data was truncated at the size limit."""


class Downloader:
    def __init__(
        self,
        policy: AddressPolicy,
        *,
        max_bytes: int,
        max_seconds: float,
        tls: ssl.SSLContext | None = None,
        purpose: str = "web_fetch",
    ) -> None:
        """`tls`: certificate authorities to use instead of the default ones. `purpose`: what the download is for, for
        error messages.
        """
        self._purpose = purpose
        self._policy = policy
        self._tls = tls
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        """Created at its first use. It keeps no state between requests, not even connections: those of two hosts with
        the same address must not be mixed up.
        """
        return httpx2.AsyncClient(
            verify=self._tls or True,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
            timeout=httpx2.Timeout(self._max_seconds, connect=min(_CONNECT_SECONDS, self._max_seconds)),
        )

    async def download_page(self, url: str) -> Download:
        """Downloads a page and follows its redirects. Raises `ToolFailure` if a host is forbidden or does not
        respond.
        """
        try:
            async with asyncio.timeout(self._max_seconds):
                return await self._follow(_check_url(url))
        except TimeoutError:
            raise ToolFailure(f"{url} took longer than {self._max_seconds:g} s.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, zlib.error) as error:
            raise ToolFailure(f"{url} could not be fetched: {_error_text(error)}.") from error

    async def check_address(self, url: str) -> None:
        """Raises `ToolFailure` if the URL is invalid, or its host is unknown or forbidden."""
        try:
            parsed = _check_url(url)
        except httpx2.InvalidURL as error:
            raise ToolFailure(f"{url!r} is not a valid URL: {_error_text(error)}.") from error
        await self._addresses(parsed, parsed.raw_host.decode("ascii"))

    async def download_trusted(self, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Download:
        """Downloads from a URL that the operator configured, without checking its address. Raises httpx2's errors and
        `TimeoutError`.
        """
        request = self._client.build_request("GET", url, params=params, headers={**_HEADERS, **headers})
        async with asyncio.timeout(self._max_seconds):
            async with aclosing(await self._client.send(request, stream=True)) as response:
                return await self._read(response, url)

    async def _follow(self, url: httpx2.URL) -> Download:
        for _ in range(MAX_REDIRECTS + 1):
            async with aclosing(await self._send(url)) as response:
                if not response.has_redirect_location:
                    return await self._read(response, str(url))
                url = _check_url(str(url.join(response.headers["location"])))
        raise ToolFailure(f"There were more than {MAX_REDIRECTS} redirects. The last one points to {url}.")

    async def _send(self, url: httpx2.URL) -> httpx2.Response:
        """Sends the request to the host's addresses, one after the other, until a connection succeeds."""
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
            return await address_check.resolve_allowed_addresses(
                self._policy, host, url.port or address_check.PORTS[url.scheme]
            )
        except address_check.UnresolvableHost as error:
            raise ToolFailure(str(error)) from error
        except address_check.ForbiddenAddress as error:
            raise ToolFailure(
                f"{error}. Such addresses are blocked for {self._purpose}. The operator of this server can allow "
                "this one with FOOTPLATE_WEB_ALLOW."
            ) from error

    async def _read(self, response: httpx2.Response, url: str) -> Download:
        data = bytearray()
        async with aclosing(_decompress(response, self._max_bytes)) as pieces:
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
            is_truncated=len(data) > self._max_bytes,
        )


async def _decompress(response: httpx2.Response, limit: int) -> AsyncGenerator[bytes, None]:
    """Decompresses the body in bounded pieces, because a few kilobytes can decompress to gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        async for piece in response.aiter_raw():
            yield piece
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise ToolFailure(f"The response has the encoding {encoding!r}, which was not requested and cannot be decoded.")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, limit + 1)


def _check_url(url: str) -> httpx2.URL:
    parsed = httpx2.URL(url)
    if parsed.scheme not in _SCHEMES or not parsed.host:
        raise ToolFailure(f"{url!r} is not an http or https URL. Use a full URL such as https://example.com/page.")
    if parsed.userinfo:
        raise ToolFailure("The URL contains a user name or password. Remove them and try again.")
    if parsed.port is not None and not 0 < parsed.port <= _MAX_PORT:
        raise ToolFailure(f"{url!r} has an invalid port.")
    return parsed


def _error_text(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
