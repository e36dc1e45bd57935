"""An MCP server that responds without end: all its responses to one request are limited together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.network.address_policy import AddressPolicy
from footplate.harness.mcp import transport
from footplate.harness.mcp.transport import CheckedTransport

pytestmark = pytest.mark.timing
CHUNK = b": nothing\n" * 1000


@asynccontextmanager
async def start_endless_server() -> AsyncIterator[tuple[str, list[int]]]:
    """Streams data that is no message, breaks off, and streams again on reconnect. Yields URL and bytes sent."""
    sent = [0]

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(b"id: 1\nretry: 1\ndata:\n\n")
        try:
            for _ in range(20):
                writer.write(CHUNK)
                sent[0] += len(CHUNK)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", sent


async def test_reconnected_streams_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_RESPONSE_BYTES", 500_000)
    async with start_endless_server() as (url, sent):
        checked = CheckedTransport(AddressPolicy(["127.0.0.1"]), EnvironmentConfig())
        async with transport.create_client(checked, 5) as http:
            for _ in range(2):
                await http.get(url)
            with pytest.raises(httpx2.ReadError):
                await http.get(url)
            with pytest.raises(httpx2.ReadError):
                await http.get(url)
    assert checked.exhausted.is_set()
    assert sent[0] <= 3 * 20 * len(CHUNK)
