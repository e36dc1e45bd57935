"""Measures the effect of clients that open a stream and never read: the delay of turns, and the API's memory."""

import asyncio
import random
import re
import socket
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.prove.figure import require
from bench.support.checking import ValidationLedger
from bench.support.cluster import Cluster
from bench.support.lean import Lean, check, events_path
from footplate.testing import Replies, replies, reply, text, tool

_PATIENCE: Final = 120.0
_SETTLING: Final = 0.5
_SAMPLING: Final = 0.05
_PSS: Final = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
_PIECE: Final = "0123456789abcdef" * 2500
"""40 KB of text; a client with previews receives it twice."""
_TURN: Final = 10


@dataclass(frozen=True, slots=True)
class Delay:
    alone: Sequence[float]
    """Seconds of undisturbed turns."""
    beside: Sequence[float]
    """Seconds of turns with a client that does not read, each run right before or after its counterpart."""

    @property
    def ratio(self) -> float:
        """The median ratio of the pairs. Other load on the machine slows both turns of a pair."""
        return statistics.median(slow / usual for usual, slow in zip(self.alone, self.beside, strict=True))


@dataclass(frozen=True, slots=True)
class Held:
    clients: int
    sent: int
    """Bytes that each of them would have received."""
    process: float
    """Maximum bytes of the API's memory per client."""
    kernel: float
    """Maximum bytes in the kernel's send queue of one client."""

    @property
    def total(self) -> float:
        return self.process + self.kernel


def _script(rounds: int) -> Replies:
    call = tool("bash", {"command": "true"})
    return replies(reply(text(_PIECE, chunks=8), call, repeat=rounds), [text("done")])


async def delay(cluster: Cluster, lean: Lean, pairs: int, ledger: ValidationLedger) -> Delay:
    """Measures turns with and without such a client, in random order, each in its own session."""
    await cluster.model.install("turn", _script(_TURN))
    seat = await lean.seat()
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(pairs):
        for disturbed in random.sample([False, True], 2):
            times[disturbed].append(await _turn(cluster, lean, seat, ledger, disturbed=disturbed))
    return Delay(times[False], times[True])


async def _turn(
    cluster: Cluster, lean: Lean, seat: dict[str, str], ledger: ValidationLedger, *, disturbed: bool
) -> float:
    session_id = (await lean.post("/v1/sessions", seat))["id"]
    async with AsyncExitStack() as exits:
        if disturbed:
            await exits.enter_async_context(_never_reads(cluster, 0, session_id))
        stream = await exits.enter_async_context(lean.stream(events_path(session_id)))
        started = time.perf_counter()
        await lean.send(session_id, "[[script:turn]]")
        frames = await stream.until_idle(patience=_PATIENCE)
        taken = time.perf_counter() - started
    check(frames, ledger)
    return taken


async def held(cluster: Cluster, lean: Lean, clients: int, ledger: ValidationLedger, *, rounds: int, warm: int) -> Held:
    """Measures the memory that the API holds for clients that do not read.

    Each client has its own session, so that nothing is shared between them. The streams use the second replica and all
    other requests the first. A warm-up with clients that read comes first, so that their memory is not counted.
    """
    await cluster.model.install("flood", _script(rounds))
    seat = await lean.seat()
    sent = min([await _flood(cluster, lean, seat, clients, ledger) for _ in range(warm)])
    before = _memory(cluster)
    sessions = [(await lean.post("/v1/sessions", seat))["id"] for _ in range(clients)]
    async with AsyncExitStack() as exits:
        for session_id in sessions:
            await exits.enter_async_context(_never_reads(cluster, 1, session_id))
        flood = asyncio.gather(*(_run(lean, session_id, ledger) for session_id in sessions))
        most, queued = await _most(cluster, flood)
    require(holds=len(queued) == clients, otherwise=f"{len(queued)} of {clients} streams were open to the end")
    return Held(clients, sent, (most - before) / clients, max(queued))


async def _most(cluster: Cluster, flood: "asyncio.Future[list[None]]") -> tuple[int, Sequence[int]]:
    """Returns the maximum memory during the flood, and the send queues at its end."""
    most = 0
    while not flood.done():
        await asyncio.wait([flood], timeout=_SAMPLING)
        most = max(most, _memory(cluster))
    flood.result()
    return most, _send_queues(cluster)


async def _flood(cluster: Cluster, lean: Lean, seat: dict[str, str], clients: int, ledger: ValidationLedger) -> int:
    """Runs the same turns with clients that read, and returns the bytes that one of them received."""
    sessions = [(await lean.post("/v1/sessions", seat))["id"] for _ in range(clients)]
    async with Lean(cluster.base_urls[1], cluster.key) as other:
        sizes = await asyncio.gather(*(_read(other, lean, session_id, ledger) for session_id in sessions))
    await asyncio.sleep(_SETTLING)
    return min(sizes)


async def _read(other: Lean, lean: Lean, session_id: str, ledger: ValidationLedger) -> int:
    async with other.stream(events_path(session_id, deltas=True)) as stream:
        await lean.send(session_id, "[[script:flood]]")
        frames = await stream.until_idle(patience=_PATIENCE)
    check(frames, ledger)
    return sum(len(frame.data) for frame in frames)


async def _run(lean: Lean, session_id: str, ledger: ValidationLedger) -> None:
    async with lean.stream(events_path(session_id)) as stream:
        await lean.send(session_id, "[[script:flood]]")
        check(await stream.until_idle(patience=_PATIENCE), ledger)


@asynccontextmanager
async def _never_reads(cluster: Cluster, api: int, session_id: str) -> AsyncIterator[None]:
    """Opens a stream, reads the first bytes of the response, and then never reads again."""
    url = urlsplit(cluster.base_urls[api])
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        # The client's kernel must not buffer the stream.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await loop.sock_connect(connection, (url.hostname, url.port))
        head = [f"GET {events_path(session_id, deltas=True)} HTTP/1.1", f"host: {url.netloc}"]
        head += [f"authorization: Bearer {cluster.key}", "", ""]
        await loop.sock_sendall(connection, "\r\n".join(head).encode())
        require(holds=await loop.sock_recv(connection, 12) == b"HTTP/1.1 200", otherwise="the stream did not open")
        yield


def _memory(cluster: Cluster) -> int:
    """Returns the Pss of the second replica in bytes: shared pages count in part."""
    found = _PSS.search(Path(f"/proc/{cluster.apis[1].pid}/smaps_rollup").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _send_queues(cluster: Cluster) -> Sequence[int]:
    """Returns the bytes in the kernel's send queue of each of the second replica's connections that has any."""
    port = urlsplit(cluster.base_urls[1]).port
    queued = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port and (size := int(fields[4].split(":")[0], 16)) > 0:
            queued.append(size)
    return queued
