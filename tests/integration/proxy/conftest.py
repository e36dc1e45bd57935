"""A model provider whose behaviour a test defines, and a proxy in front of it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from footplate.domain.ports.engine import ModelGrant
from footplate.domain.ports.harness import Endpoint
from footplate.harness.native.requests.sdk_transport import HttpxModelTransport
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing.server.http_server import create_server

KEY = 'sk-the-real-key-/+"of-the-account'
Behaviour = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


@dataclass
class Provider:
    """An upstream server. `behave` is an ASGI application that a test provides."""

    url: str = ""
    behave: Behaviour | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.seen.append(scope)
        if self.behave is not None:
            await self.behave(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        await send_response(send, 200, b'{"fine": true}')

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Returns the headers of the last request."""
        return [(name.decode(), value.decode()) for name, value in self.seen[-1]["headers"]]


async def send_response(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    given = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def run_server(app: Any) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    serving = create_server(app)
    task = asyncio.create_task(serving.serve(sockets=[listener]))
    await serving.ready.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        serving.should_exit = True
        await task


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    async with run_server(provider) as url:
        provider.url = url
        yield provider


@pytest.fixture
async def proxy(provider: Provider) -> AsyncIterator[ModelProxy]:
    endpoints = {"anthropic": Endpoint(KEY, provider.url), "openai": Endpoint(KEY, f"{provider.url}/v1")}
    async with ModelProxy(endpoints) as proxy:
        yield proxy


@pytest.fixture
async def grant(proxy: ModelProxy) -> AsyncIterator[ModelGrant]:
    grant = proxy.grant(deadline=lease_clock() + 60)
    yield grant
    await grant.aclose()


@pytest.fixture
async def loopback(grant: ModelGrant) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the turn's token, in Anthropic's wire format."""
    async with make_client(grant) as client:
        yield client


@pytest.fixture(params=["loopback", "in process"])
async def client(
    request: pytest.FixtureRequest, proxy: ModelProxy, grant: ModelGrant
) -> AsyncIterator[httpx2.AsyncClient]:
    """The same client, over loopback and in process."""
    async with make_client(
        grant, HttpxModelTransport(proxy.in_process) if request.param == "in process" else None
    ) as client:
        yield client


def make_client(grant: ModelGrant, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    endpoint = grant.endpoints["anthropic"]
    headers = {"x-api-key": endpoint.api_key}
    return httpx2.AsyncClient(base_url=endpoint.base_url or "", headers=headers, transport=transport, trust_env=False)
