"""Limits that apply before a request reaches the application, tested with a real server on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.integration.api.serving import get_port, serve_api
from tests.unit.api.conftest import Api, make_client
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from footplate.api.server import http_protocol
from footplate.api.server.http_protocol import LimitedConfig
from footplate.api.wire.response_models import Error
from footplate.domain.network.request_limits import RequestLimits
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

KEY = b"authorization: Bearer secret-a\r\n"
HEALTH = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
LIMITS = RequestLimits(
    header_bytes=8192,
    header_seconds=0.3,
    idle_seconds=1,
    connections=12,
    connections_per_address=10,
    pipelined_requests=3,
    body_rate=100,
    socket_frames=20,
    write_seconds=0.5,
)


class Server:
    def __init__(self, api: Api, config: LimitedConfig, port: int) -> None:
        self.api = api
        self.config = config
        self.port = port

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def exchange(self, *chunks: bytes, pause: float = 0) -> bytes:
        """Sends the chunks and returns everything that the server sends until it closes the connection."""
        async with self.connection() as (reader, writer), asyncio.timeout(30):
            receiving = asyncio.create_task(_read_all(reader))
            for chunk in chunks:
                writer.write(chunk)
                await asyncio.sleep(pause)
                if receiving.done():
                    break
            return await receiving

    async def is_empty(self) -> bool:
        return not self.config.slots.used


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    """Reads to the end, or to a reset: the server closes the connection of a client that is still sending."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := await reader.read(65_536):
            received += chunk
    return received


@pytest.fixture
async def server(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    monkeypatch.setattr(http_protocol, "_BODY_CHECK_SECONDS", 0.3)
    async with _serve(api, LIMITS) as running:
        yield running


@asynccontextmanager
async def _serve(api: Api, limits: RequestLimits) -> AsyncIterator[Server]:
    async with serve_api(api.app, limits) as running:
        assert isinstance(running.config, LimitedConfig)
        yield Server(api, running.config, get_port(running))


async def _within(reached: Callable[[], bool], seconds: float = 10) -> bool:
    async def check() -> bool:
        return reached()

    return await wait_until(check, seconds)


def _refusal(received: bytes, status: int, setting: str) -> dict[str, Any]:
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), received[:300]
    assert b"connection: close" in head
    assert b"request-id: req_" in head
    response = json.loads(body)
    Error.model_validate(response)
    assert setting in response["error"]["help"]
    error: dict[str, Any] = response["error"]
    return error


@pytest.mark.parametrize(
    "pieces",
    [
        [b"GET /livez HTTP/1.1\r\nx: " + b"a" * 100_000],
        [b"GET /livez HTTP/1.1\r\nx: " + b"a" * 9_000 + b"\r\n\r\n"],
        [b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"],
        [b"GET /" + b"a" * 100_000],
        [b"\r\n" * 5_000],
        [b"GET /livez HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nx: " + b"a" * 8_100 + b"\r\n\r\n"],
    ],
)
async def test_large_headers_are_refused(server: Server, pieces: list[bytes]) -> None:
    error = _refusal(await server.exchange(*pieces), 431, "FOOTPLATE_HEADER_BYTES")
    assert "larger than 8192 bytes" in error["message"]
    assert await wait_until(server.is_empty, 5)


async def test_many_headers_are_refused(server: Server) -> None:
    received = await server.exchange(b"GET /livez HTTP/1.1\r\n", *[b"x: y\r\n" * 150] * 50)
    assert "more than 200 headers" in _refusal(received, 431, "FOOTPLATE_HEADER_COUNT")["message"]


async def test_large_trailers_are_refused(server: Server) -> None:
    head = (
        b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\n" + KEY + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
    )
    for trailers in (b"x: y\r\n" * 5_000, b"x: " + b"y" * 100_000):
        assert b"HTTP/1.1 431" in await server.exchange(head, trailers, pause=0.05)


async def test_many_small_chunks_are_refused(server: Server) -> None:
    head = (
        b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        + KEY
        + b"transfer-encoding: chunked\r\n\r\n"
    )
    received = await server.exchange(head, b"1\r\n \r\n" * 2_001)
    assert "more than 2000 chunks" in _refusal(received, 413, "FOOTPLATE_SMALL_CHUNKS")["message"]
    lines = b"40\r\n%s\r\n" % (b" " * 64) * 3_000
    assert b"HTTP/1.1 400" in await server.exchange(head, lines + b"1\r\n \r\n" * 1_000 + b"0\r\n\r\n")


@pytest.mark.parametrize(
    "sent", [b"G", b"GET /livez HTTP/1.1\r\nhost: localhost\r\n", HEALTH + b"GET /livez HTTP/1.1\r\nx"]
)
async def test_a_head_that_never_ends_times_out(server: Server, sent: bytes) -> None:
    received = await server.exchange(sent)
    last = received[received.rindex(b"HTTP/1.1 ") :]
    assert "within 0.3 seconds" in _refusal(last, 408, "FOOTPLATE_HEADER_SECONDS")["message"]


@pytest.mark.parametrize("pieces", [[b""], [b"\r\n"] * 20, [HEALTH, *[b"\r\n"] * 40]])
async def test_a_connection_without_a_request_is_closed(server: Server, pieces: list[bytes]) -> None:
    received = await server.exchange(*pieces, pause=0.1)
    assert received.count(b"HTTP/1.1 ") == pieces.count(HEALTH)


@pytest.mark.parametrize("path", ["/v1/agents", "/v1/files"])
async def test_slow_bodies_time_out(server: Server, path: str) -> None:
    kind = b"content-type: multipart/form-data; boundary=x\r\n" if path == "/v1/files" else b""
    head = b"POST %s HTTP/1.1\r\nhost: localhost\r\n%s%scontent-length: 1000\r\n\r\n--x\r\n" % (
        path.encode(),
        KEY,
        kind,
    )
    error = _refusal(await server.exchange(head, *[b"a"] * 100, pause=0.05), 408, "FOOTPLATE_BODY_RATE")
    assert "less than 100 bytes per second" in error["message"]
    assert server.api.app.state.services.quotas.buffered_bytes == 0


async def test_a_refused_body_is_not_read_for_long(server: Server) -> None:
    head = b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\n" + KEY + b"content-length: 100000000\r\n\r\n"
    received = await server.exchange(head, *[b" " * 1000] * 100, pause=0.02)
    assert received.startswith(b"HTTP/1.1 413 ")


async def test_a_client_sees_why_its_body_was_refused(api: Api) -> None:
    head = b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\n" + KEY + b"content-length: 5000000\r\n\r\n"
    async with _serve(api, RequestLimits(idle_seconds=1)) as server:
        received = await server.exchange(head, b" " * 5_000_000 + HEALTH)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert received.count(b"HTTP/1.1 200 OK") == 1


async def test_connections_per_address_are_limited(api: Api) -> None:
    async with asyncio.timeout(30), _serve(api, LIMITS.model_copy(update={"header_seconds": 60})) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(10)]
        error = _refusal(await server.exchange(b""), 429, "FOOTPLATE_CONNECTIONS_PER_ADDRESS")
        assert "127.0.0.1 already has 10 open connections" in error["message"]
        for _, writer in opened:
            writer.close()
        assert await wait_until(server.is_empty, 5)
        assert b"200 OK" in await server.exchange(HEALTH)


async def test_pipelined_requests_are_limited(server: Server) -> None:
    received = await server.exchange(HEALTH * 500)
    assert received.count(b"HTTP/1.1 200 OK") == 4
    last = received[received.rindex(b"HTTP/1.1 ") :]
    assert "More than 3 pipelined requests" in _refusal(last, 429, "FOOTPLATE_PIPELINED_REQUESTS")["message"]
    few = await server.exchange(HEALTH * 4)
    assert few.count(b"HTTP/1.1 200 OK") == few.count(b"HTTP/1.1 ") == 4


async def _session(api: Api) -> str:
    async with make_client(api.app) as http:
        agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
        environment = (await http.post("/v1/environments", json={"name": "e"})).json()["id"]
        created = await http.post("/v1/sessions", json={"agent": agent, "environment_id": environment})
    found: str = created.json()["id"]
    return found


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b"never"


async def _flood() -> AsyncIterator[bytes]:
    while True:
        yield b": " + b"x" * 60_000 + b"\n\n"
        await asyncio.sleep(0)


async def _open_stream(server: Server, behind: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    path = f"/v1/sessions/{await _session(server.api)}/events/stream".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET %s HTTP/1.1\r\nhost: localhost\r\n%s\r\n%s" % (path, KEY, behind))
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.mark.parametrize("behind", [b"", HEALTH, HEALTH * 3, HEALTH * 100])
async def test_a_stream_ends_with_its_connection(server: Server, behind: bytes) -> None:
    """Also while other requests wait behind it."""
    server.api.tails.forever = _silence
    quotas = server.api.app.state.services.quotas
    _, writer = await _open_stream(server, behind)
    assert quotas.streams == 1
    writer.close()
    assert await _within(lambda: quotas.streams == 0 and not server.config.slots.used)


async def test_a_client_that_does_not_read_is_disconnected(server: Server) -> None:
    server.api.tails.forever = _flood
    quotas = server.api.app.state.services.quotas
    reader, writer = await _open_stream(server)
    reader._transport.pause_reading()  # pyrefly: ignore[missing-attribute]
    assert await _within(lambda: quotas.streams == 0 and not server.config.slots.used)
    writer.close()


async def test_a_websocket_outlives_the_header_timeout(server: Server) -> None:
    server.api.tails.forever = _silence
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/{await _session(server.api)}/ws"
    async with connect(url, proxy=None, additional_headers={"x-api-key": "secret-a"}) as socket:
        await asyncio.sleep(3 * LIMITS.header_seconds)
        await asyncio.wait_for(await socket.ping(), 10)


Attack = Callable[[Any], Coroutine[Any, Any, None]]


async def _ping(socket: Any) -> None:
    for _ in range(300):
        await socket.ping()
    await socket.recv()


async def _fragments(socket: Any) -> None:
    await socket.send(["x"] * 300)
    await socket.recv()


@pytest.mark.parametrize("attack", [_ping, _fragments])
async def test_websocket_floods_are_closed(server: Server, attack: Attack) -> None:
    server.api.tails.forever = _silence
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/{await _session(server.api)}/ws"
    async with connect(url, proxy=None, additional_headers={"x-api-key": "secret-a"}) as socket:
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(attack(socket), 10)
    assert socket.close_code == 1008
    assert "FOOTPLATE_SOCKET_FRAMES" in (socket.close_reason or "")
    quotas = server.api.app.state.services.quotas
    assert await _within(lambda: quotas.streams == 0 and not server.config.slots.used)
