"""With any key: one key opens a thousand streams, so that none remain for others."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

from bench.support.cluster import open_cluster

_STREAMS: Final = 1_000
_MAX_STREAMS: Final = 500


async def attack() -> str | None:
    async with open_cluster(apis=1, workers=0) as cluster:
        port, key = cluster.ports[0], cluster.key
        agent = await _post(port, key, "/v1/agents", {"name": "a", "model": "claude-sonnet-4-5"})
        environment = await _post(port, key, "/v1/environments", {"name": "e"})
        body = {"agent": agent["id"], "environment_id": environment["id"]}
        session = await _post(port, key, "/v1/sessions", body)
        path = f"/v1/sessions/{session['id']}/events/stream"
        opened = []
        for _ in range(_STREAMS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_request("GET", path, key))
            opened.append((reader, writer))
        accepted = 0
        for reader, _ in opened:
            with suppress(OSError, asyncio.IncompleteReadError):
                accepted += b" 200 " in await asyncio.wait_for(reader.readuntil(b"\r\n"), 30)
        for _, writer in opened:
            writer.transport.abort()
    return f"one key has {accepted} streams open" if accepted > _MAX_STREAMS else None


def _request(method: str, path: str, key: str, body: bytes = b"", more: str = "") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {key}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode() + body


async def _post(port: int, key: str, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request("POST", path, key, json.dumps(fields).encode(), "connection: close\r\n"))
    received = await reader.read()
    writer.close()
    found: dict[str, Any] = json.loads(received.partition(b"\r\n\r\n")[2])
    return found
