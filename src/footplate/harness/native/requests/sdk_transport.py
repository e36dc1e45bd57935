"""HTTP transport for the SDKs of model providers. It inserts the older messages of a conversation into the request body
as JSON that is already encoded, so that they are not encoded again (see `encoded_message_cache`).

If the model proxy runs in the worker process, the transport calls it directly, without a network connection.
"""

import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import httpx2

from footplate.domain.ports.model_transport import HttpRequest, HttpResponse, ModelTransport

_TIMEOUT: Final = httpx2.Timeout(600, connect=10)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


@dataclass(frozen=True, slots=True)
class MessageArray:
    """The location of a conversation's messages in a request body."""

    field: str
    skipped: int = 0
    """Number of array items before the first message."""

    def extract_items(self, body: bytes) -> bytes:
        """The conversation's messages as comma-separated JSON, without the array's brackets."""
        return b",".join(encode_json(item) for item in json.loads(body)[self.field][self.skipped :])

    def insert_items(self, items: bytes, body: bytes) -> bytes:
        """The request body with these items inserted before its own messages."""
        return b"{" + b",".join(self._members(items, json.loads(body))) + b"}"

    def _members(self, items: bytes, fields: dict[str, Any]) -> Iterator[bytes]:
        for name, value in fields.items():
            if name == self.field:
                own = [encode_json(item) for item in value]
                encoded = b"[" + b",".join([*own[: self.skipped], items, *own[self.skipped :]]) + b"]"
            else:
                encoded = encode_json(value)
            yield encode_json(name) + b":" + encoded


def encode_json(value: object) -> bytes:
    """Encodes JSON in the same way as the SDKs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


@dataclass(slots=True)
class Recording:
    body: bytes | None = field(default=None, repr=False)


class RequestRecorded(Exception):
    """Raised instead of returning a response."""


_PREFIX: ContextVar[tuple[MessageArray, bytes] | None] = ContextVar("prefix", default=None)
_RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)
_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("headers", default={})  # noqa: B039 - never changed


@contextmanager
def insert_prefix(array: MessageArray, items: bytes) -> Iterator[None]:
    """Inserts these older messages into the requests made in this context. The SDK itself sends
    only the newest messages.
    """
    token = _PREFIX.set((array, items))
    try:
        yield
    finally:
        _PREFIX.reset(token)


@contextmanager
def record_request() -> Iterator[Recording]:
    """Records the body of a request made in this context. The request is not sent, and `RequestRecorded` is raised."""
    recording = Recording()
    token = _RECORDING.set(recording)
    try:
        yield recording
    finally:
        _RECORDING.reset(token)


@contextmanager
def set_headers(headers: Mapping[str, str]) -> Iterator[None]:
    """Sets headers of the requests made in this context, for SDKs that have no parameter for them."""
    token = _HEADERS.set(headers)
    try:
        yield
    finally:
        _HEADERS.reset(token)


def create_client(models: ModelTransport | None) -> httpx2.AsyncClient:
    inner = (
        httpx2.AsyncHTTPTransport(verify=_trusted_certificates(), limits=_LIMITS, trust_env=False)
        if models is None
        else HttpxModelTransport(models)
    )
    return httpx2.AsyncClient(timeout=_TIMEOUT, transport=_PrefixTransport(inner), trust_env=False)


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """All clients share one context, because loading the certificates takes longer than a short request."""
    return httpx2.create_ssl_context(trust_env=False)


class _PrefixTransport(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        recording, prefix = _RECORDING.get(), _PREFIX.get()
        if recording is not None:
            recording.body = await request.aread()
            raise RequestRecorded
        if prefix is not None:
            array, items = prefix
            request = _with_body(request, array.insert_items(items, await request.aread()))
        request.headers.update(_HEADERS.get())
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _with_body(request: httpx2.Request, body: bytes) -> httpx2.Request:
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx2.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


class HttpxModelTransport(httpx2.AsyncBaseTransport):
    def __init__(self, models: ModelTransport) -> None:
        self._models = models

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        sent = HttpRequest(request.method, request.url.raw_path, request.headers.raw, body)
        response = await self._models.send(sent)
        return httpx2.Response(response.status, headers=[*response.headers], stream=_ResponseStream(response))


class _ResponseStream(httpx2.AsyncByteStream):
    def __init__(self, response: HttpResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.pieces():
                yield piece
        except ConnectionError as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._response.aclose()
