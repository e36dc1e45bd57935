"""HTTP transport of the client: retries requests without repeating their effect, and raises exceptions for error
responses.
"""

import ipaddress
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import httpx2
import stamina

from footplate.client.errors import ApiError, ClientError, RateLimited, Unreachable, error_for_status

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

Params = Mapping[str, Any]
Frame = httpx2.ServerSentEvent
RateLimitListener = Callable[[RateLimited], None]
TIMEOUT: Final = 30.0
PATIENCE: Final = 60.0
_UNPROVEN_SERVER_PATIENCE: Final = 1.0
_STREAM_SILENCE_SECONDS: Final = 60.0
"""A stream that sends nothing for this many seconds is dead. The server sends a keep-alive every 15 s."""
_FIRST_ERROR_STATUS: Final = 400
_LONG_READ_TIMEOUT: Final = 600.0
"""The server reads or writes a whole conversation before the response starts, which can take minutes."""
_NDJSON: Final = "application/x-ndjson"


class Transport:
    """The connection to one server. Requests are retried for one second until the server has responded once, and then
    for the whole `patience`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
        http: httpx2.AsyncClient | None = None,
        on_rate_limit: RateLimitListener | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = {"x-api-key": api_key}
        self._timeout = timeout
        self._full_patience = patience
        self._on_rate_limit = on_rate_limit
        self._has_responded = False
        # Proxy settings from the environment do not apply to a server on this machine.
        self._http = http or httpx2.AsyncClient(trust_env=not _is_loopback(base_url))

    async def aclose(self) -> None:
        await self._http.aclose()

    @property
    def patience(self) -> float:
        """For how many seconds a request that starts now is retried."""
        return self._full_patience if self._has_responded else min(_UNPROVEN_SERVER_PATIENCE, self._full_patience)

    async def get(self, path: str, params: Params | None = None) -> dict[str, Any]:
        return await self._request_with_retries("GET", path, params=params)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self._request_with_retries("POST", path, body={} if body is None else body, key=str(uuid.uuid4()))

    async def post_with_long_timeout(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Posts a request that may have to wait for others before it completes: uses the long read timeout."""
        timeout = httpx2.Timeout(self._timeout, read=_LONG_READ_TIMEOUT)
        return await self._request_with_retries("POST", path, body=body, key=str(uuid.uuid4()), timeout=timeout)

    async def post_lines(self, path: str, lines: Callable[[], Iterable[bytes]]) -> dict[str, Any]:
        """Posts a streamed body. `lines` is called for each attempt, so the whole body is never in memory."""
        return await self._request_with_retries("POST", path, lines=lines, key=str(uuid.uuid4()))

    async def post_form(self, path: str, form: Mapping[str, Any]) -> dict[str, Any]:
        """Posts a multipart form. `form` has the `files` and `data` arguments of httpx."""
        return await self._request_with_retries("POST", path, form=form, key=str(uuid.uuid4()))

    async def post_signed(self, path: str, content: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Posts a body that its headers sign, without the API key. The caller gives it an id, so retries act once."""
        async for attempt in _retry(self.patience):
            with attempt:
                return await self._request_once("POST", path, headers=headers, content=content, timeout=self._timeout)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def stream_json_lines(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """Yields the lines of a long response. Raises `Unreachable` if it breaks off."""
        async with aclosing(self.stream_bytes(path)) as chunks:
            async for line in _parse_json_lines(chunks):
                yield line

    async def stream_bytes(self, path: str, params: Params | None = None) -> AsyncGenerator[bytes, None]:
        """Yields the bytes of a long response as they arrive. Raises `Unreachable` if it breaks off."""
        timeout = httpx2.Timeout(self._timeout, read=_LONG_READ_TIMEOUT)
        try:
            async with self._http.stream(
                "GET", self.base_url + path, params=params, headers=self._headers, timeout=timeout
            ) as response:
                if response.status_code >= _FIRST_ERROR_STATUS:
                    await response.aread()
                    raise _error_from_response(response)
                self._has_responded = True
                async for chunk in response.aiter_bytes():
                    yield chunk
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    @asynccontextmanager
    async def open_websocket(self, path: str) -> "AsyncIterator[ClientConnection]":
        """Opens a WebSocket. Raises the error of a refused handshake, and `Unreachable` if it cannot be opened."""
        from websockets.asyncio.client import connect  # only few commands need it
        from websockets.exceptions import InvalidStatus, WebSocketException

        proxy: Literal[True] | None = None if _is_loopback(self.base_url) else True
        try:
            opened = await connect(
                "ws" + self.base_url.removeprefix("http") + path,
                additional_headers=self._headers,
                proxy=proxy,
                open_timeout=self._timeout,
            )
        except InvalidStatus as error:
            request = httpx2.Request("GET", self.base_url + path)
            content = bytes(error.response.body or b"")
            response = httpx2.Response(error.response.status_code, content=content, request=request)
            raise _error_from_response(response) from error
        except (OSError, WebSocketException) as error:
            raise self._unreachable(error) from error
        async with opened:
            yield opened

    async def put(self, path: str) -> dict[str, Any]:
        return await self._request_with_retries("PUT", path, key=str(uuid.uuid4()))

    async def delete(self, path: str) -> dict[str, Any]:
        return await self._request_with_retries("DELETE", path, key=str(uuid.uuid4()))

    @asynccontextmanager
    async def open_event_stream(
        self, path: str, params: Params, cursor: str | None
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        """Opens one event-stream connection. Raises `Unreachable` for every way in which it can break."""
        headers = {**self._headers, **({"last-event-id": cursor} if cursor else {})}
        timeout = httpx2.Timeout(self._timeout, read=_STREAM_SILENCE_SECONDS)
        try:
            async with self._http.sse(
                self.base_url + path, params=params, headers=headers, timeout=timeout, max_event_size=None
            ) as source:
                response = source.response
                if response.status_code >= _FIRST_ERROR_STATUS:
                    await response.aread()
                    raise _error_from_response(response)
                self._has_responded = True
                yield self._read_frames(source)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    async def _read_frames(self, source: httpx2.EventSource) -> AsyncIterator[Frame]:
        try:
            async for frame in source:
                yield frame
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    async def _request_with_retries(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        lines: Callable[[], Iterable[bytes]] | None = None,
        form: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout: httpx2.Timeout | float | None = None,  # noqa: ASYNC109 - the library enforces it
    ) -> dict[str, Any]:
        """Sends the request with retries. All attempts carry the same idempotency key, so the server acts once."""
        had_responded = self._has_responded
        request: dict[str, Any] = {
            "params": params,
            "body": body,
            "lines": lines,
            "form": form,
            "key": key,
            "timeout": timeout,
        }
        try:
            return await self._request_for(self.patience, method, path, **request)
        except RateLimited as error:
            if had_responded or not error.retryable:
                raise
        # The server responds, so it is worth the whole patience.
        return await self._request_for(self.patience, method, path, **request)

    async def _request_for(
        self,
        patience: float,
        method: str,
        path: str,
        *,
        params: Params | None,
        body: Mapping[str, Any] | None,
        lines: Callable[[], Iterable[bytes]] | None,
        form: Mapping[str, Any] | None,
        key: str | None,
        timeout: httpx2.Timeout | float | None,  # noqa: ASYNC109 - the library enforces it
    ) -> dict[str, Any]:
        headers = {**self._headers, **({"idempotency-key": key} if key else {})}
        async for attempt in _retry(patience):
            with attempt:
                if form is not None:
                    timeout = httpx2.Timeout(self._timeout, read=_LONG_READ_TIMEOUT)
                    return await self._request_once(method, path, headers=headers, timeout=timeout, **form)
                if lines is not None:
                    headers["content-type"] = _NDJSON
                    timeout = httpx2.Timeout(self._timeout, read=_LONG_READ_TIMEOUT)
                    return await self._request_once(
                        method, path, headers=headers, content=_iterate_async(lines()), timeout=timeout
                    )
                return await self._request_once(
                    method, path, headers=headers, params=params, json=body, timeout=timeout or self._timeout
                )
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _request_once(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Sends the request once. `options` are further httpx arguments: headers, body and timeout."""
        try:
            response = await self._http.request(method, self.base_url + path, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from error
        if response.status_code >= _FIRST_ERROR_STATUS:
            refusal = _error_from_response(response)
            if isinstance(refusal, RateLimited) and refusal.retryable:
                self._has_responded = True
                if self._on_rate_limit is not None:
                    self._on_rate_limit(refusal)
            raise refusal
        self._has_responded = True
        return _json_object(response)

    def _unreachable(self, error: Exception) -> Unreachable:
        detail = str(error) or type(error).__name__
        return Unreachable(f"{self.base_url} does not respond: {detail}")


def _retry(patience: float) -> AsyncIterable[stamina.Attempt]:
    return stamina.retry_context(
        on=should_retry, attempts=None, timeout=patience, wait_initial=0.1, wait_max=2, wait_jitter=0.1
    )


async def _iterate_async(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


async def _parse_json_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Splits at newline bytes only: the text may contain other characters that Python treats as line breaks."""
    rest = b""
    async for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield json.loads(line)


def should_retry(error: Exception) -> bool | float:
    if isinstance(error, ApiError):
        return (error.retry_after or True) if error.retryable else False
    return isinstance(error, Unreachable)


def _error_from_response(response: httpx2.Response) -> ApiError:
    header = response.headers.get("retry-after", "")
    retry_after = float(header) if header.isdecimal() else None
    body: dict[str, Any] = {}
    with suppress(ClientError):  # for example, an error page of a proxy
        body = _json_object(response)
    should_retry = response.headers.get("x-should-retry") != "false"
    return error_for_status(response.status_code, body, retry_after=retry_after, should_retry=should_retry)


def _json_object(response: httpx2.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ClientError(
            f"{response.url.host} returned status {response.status_code} with a body that is not a Footplate response.",
            help_text="Check the address: it must be the base URL of the API, without a path.",
        )
    return value


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
