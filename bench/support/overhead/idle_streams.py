"""Measures the memory of one API process with many idle streams, and checks that the streams stay alive.

Each stream belongs to a different session, which is the most expensive case. Memory is the kernel's own figure
(`smaps_rollup`): Rss counts all pages of the process, Pss divides shared pages among the processes that share them.
"""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, cast

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, events_path
from bench.support.speed.measurement import Measurement
from footplate.stream.sse import KEEP_ALIVE

_MAX_MB: Final = 300
_AT_ONCE: Final = 20
_MAX_OPEN_FILES: Final = 20_000


def allow_many_connections() -> None:
    """Raises the limit on open files for this process and its future child processes."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (_MAX_OPEN_FILES if hard_limit == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard_limit), hard_limit),
    )


async def measure(cluster: Cluster, *, streams: int, keepalive: float, rounds: int) -> Measurement:
    """Listens to each stream for `rounds` keep-alive intervals. `keepalive` is the interval set for the API."""
    async with MinimalClient(cluster.base_urls[0], cluster.key) as client:
        session_fields = await client.create_session_fields()
        sessions = [(await client.post("/v1/sessions", session_fields))["id"] for _ in range(streams)]
        pid = cluster.apis[0].pid
        assert pid is not None
        before = read_memory(pid)
        async with _open_streams(client, sessions) as listeners:
            opened = read_memory(pid)
            heard = [listener.keep_alives for listener in listeners]
            await asyncio.sleep(keepalive * (rounds + 0.5))
            after = read_memory(pid)
            gained = [one.keep_alives - old for one, old in zip(listeners, heard, strict=True)]
            broken = sum(listener.lost for listener in listeners)
    max_rss, min_keep_alives = max(opened["Rss"], after["Rss"]), min(gained)
    return Measurement(
        text=f"{streams:,} idle streams of as many sessions on one API process: {max_rss:.0f} MB Rss, "
        f"{after['Pss']:.0f} "
        f"MB Pss, before them {before['Rss']:.0f} and {before['Pss']:.0f} (limit {_MAX_MB} MB Rss); each got "
        f"{min_keep_alives} to {max(gained)} keep-alives in {rounds} times {keepalive:g} s, {broken} broke",
        holds=max_rss <= _MAX_MB and min_keep_alives >= rounds and broken == 0,
        details={"streams": streams, "before_mb": {**before}, "opened_mb": {**opened}, "after_mb": {**after}},
        figures={"streams": streams, "mb": max_rss},
    )


def read_memory(pid: int) -> dict[str, float]:
    """Returns Rss and Pss of a process in MB (of 1,000,000 bytes)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: int(value.split()[0]) * 1024 / 1e6 for name, _, value in (line.partition(":") for line in lines)}
    return {name: round(sizes[name], 1) for name in ("Rss", "Pss")}


class _Listener(asyncio.Protocol):
    """Counts the keep-alives of one stream. It is as small as possible, because there are thousands."""

    __slots__ = ("_request", "_rest", "keep_alives", "lost", "opened")

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._rest = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.keep_alives = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.WriteTransport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            require(holds=b" 200 " in data, otherwise=f"a stream was refused: {data!r}")
            self.opened.set_result(None)
        joined = self._rest + data
        self.keep_alives += joined.count(KEEP_ALIVE)
        self._rest = joined[1 - len(KEEP_ALIVE) :]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self.lost = True


@asynccontextmanager
async def _open_streams(client: MinimalClient, sessions: list[str]) -> AsyncIterator[list[_Listener]]:
    loop = asyncio.get_running_loop()
    transports: list[asyncio.BaseTransport] = []
    listeners: list[_Listener] = []
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(session_id: str) -> None:
        head = (
            f"GET {events_path(session_id)} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {client.key}\r\n\r\n"
        )
        async with gate:
            transport, listener = await loop.create_connection(partial(_Listener, head.encode()), *client.address)
            transports.append(transport)
            listeners.append(listener)
            await listener.opened

    try:
        async with asyncio.TaskGroup() as group:
            for session_id in sessions:
                group.create_task(one(session_id))
        yield listeners
    finally:
        for transport in transports:
            transport.close()
