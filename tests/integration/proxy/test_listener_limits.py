"""Listeners beside the API close connections whose request never becomes complete or has no end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from footplate.proxy import asgi_socket_server as proxy_serving
from footplate.testing.server import http_server as testing_serving

from .conftest import run_server, send_response

pytestmark = pytest.mark.timing

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await send_response(send, 200, b"{}")


@asynccontextmanager
async def _proxy() -> AsyncIterator[int]:
    listener = proxy_serving.listen_on_loopback()
    served = proxy_serving.AppServer(_app, {}, max_connections=4)
    await served.serve(listener)
    yield listener.getsockname()[1]
    served.close()


@asynccontextmanager
async def _scripted_model() -> AsyncIterator[int]:
    async with run_server(_app) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture(params=[_proxy, _scripted_model])
async def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    for module in (proxy_serving, testing_serving):
        monkeypatch.setattr(module, "_HEAD_SECONDS", 0.3)
    async with request.param() as number:
        yield number


@pytest.mark.parametrize("sent", [b"", b"G", REQUEST[:-2], REQUEST + b"G", REQUEST + b"\r\n"])
async def test_an_incomplete_request_is_closed(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent[: len(REQUEST)])
    if sent.startswith(REQUEST):
        await reader.readuntil(b"{}")
        writer.write(sent[len(REQUEST) :])
    async with asyncio.timeout(10):
        await reader.read()
    writer.close()


async def _send_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\n")
    for _ in range(10_000):
        writer.write(b"x: y\r\n" * 1000)
        await writer.drain()


async def test_endless_headers_are_refused(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(_send_headers(writer), 10)
    writer.close()


async def test_a_slow_response_is_not_cut(port: int) -> None:
    """Time for the head of a request is not time for its response, nor for the pause before the next."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(REQUEST)
        async with asyncio.timeout(10):
            await reader.readuntil(b"{}")
        await asyncio.sleep(0.5)
    writer.close()
