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
from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, events_path, validate_frames
from bench.support.response_validation import ValidationLedger
from footplate.testing import Replies, replies, reply, text, tool

_PATIENCE: Final = 120.0
_SETTLE_SECONDS: Final = 0.5
_SAMPLE_SECONDS: Final = 0.05
_PSS: Final = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
_PIECE: Final = "0123456789abcdef" * 2500
"""40 KB of text; a client with previews receives it twice."""
_TURN_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class TurnDelay:
    undisturbed: Sequence[float]
    """Seconds of undisturbed turns."""
    disturbed: Sequence[float]
    """Seconds of turns with a client that does not read, each run right before or after its counterpart."""

    @property
    def ratio(self) -> float:
        """The median ratio of the pairs. Other load on the machine slows both turns of a pair."""
        return statistics.median(slow / usual for usual, slow in zip(self.undisturbed, self.disturbed, strict=True))


@dataclass(frozen=True, slots=True)
class HeldMemory:
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


async def measure_delay(cluster: Cluster, client: MinimalClient, pairs: int, ledger: ValidationLedger) -> TurnDelay:
    """Measures turns with and without such a client, in random order, each in its own session."""
    await cluster.model.install("turn", _script(_TURN_ROUNDS))
    session_fields = await client.create_session_fields()
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(pairs):
        for disturbed in random.sample([False, True], 2):
            times[disturbed].append(await _run_turn(cluster, client, session_fields, ledger, disturbed=disturbed))
    return TurnDelay(times[False], times[True])


async def _run_turn(
    cluster: Cluster,
    client: MinimalClient,
    session_fields: dict[str, str],
    ledger: ValidationLedger,
    *,
    disturbed: bool,
) -> float:
    session_id = (await client.post("/v1/sessions", session_fields))["id"]
    async with AsyncExitStack() as exits:
        if disturbed:
            await exits.enter_async_context(_open_unread_stream(cluster, 0, session_id))
        stream = await exits.enter_async_context(client.stream(events_path(session_id)))
        started = time.perf_counter()
        await client.send(session_id, "[[script:turn]]")
        frames = await stream.until_idle(patience=_PATIENCE)
        taken = time.perf_counter() - started
    validate_frames(frames, ledger)
    return taken


async def measure_held_memory(
    cluster: Cluster, client: MinimalClient, clients: int, ledger: ValidationLedger, *, rounds: int, warm: int
) -> HeldMemory:
    """Measures the memory that the API holds for clients that do not read.

    Each client has its own session, so that nothing is shared between them. The streams use the second replica and all
    other requests the first. A warm-up with clients that read comes first, so that their memory is not counted.
    """
    await cluster.model.install("flood", _script(rounds))
    session_fields = await client.create_session_fields()
    sent = min([await _run_with_readers(cluster, client, session_fields, clients, ledger) for _ in range(warm)])
    before = _memory(cluster)
    sessions = [(await client.post("/v1/sessions", session_fields))["id"] for _ in range(clients)]
    async with AsyncExitStack() as exits:
        for session_id in sessions:
            await exits.enter_async_context(_open_unread_stream(cluster, 1, session_id))
        flood = asyncio.gather(*(_run_flood_turn(client, session_id, ledger) for session_id in sessions))
        max_memory, queued = await _sample_flood(cluster, flood)
    require(holds=len(queued) == clients, otherwise=f"{len(queued)} of {clients} streams were open to the end")
    return HeldMemory(clients, sent, (max_memory - before) / clients, max(queued))


async def _sample_flood(cluster: Cluster, flood: "asyncio.Future[list[None]]") -> tuple[int, Sequence[int]]:
    """Returns the maximum memory during the flood, and the send queues at its end."""
    max_memory = 0
    while not flood.done():
        await asyncio.wait([flood], timeout=_SAMPLE_SECONDS)
        max_memory = max(max_memory, _memory(cluster))
    flood.result()
    return max_memory, _send_queues(cluster)


async def _run_with_readers(
    cluster: Cluster, client: MinimalClient, session_fields: dict[str, str], clients: int, ledger: ValidationLedger
) -> int:
    """Runs the same turns with clients that read, and returns the bytes that one of them received."""
    sessions = [(await client.post("/v1/sessions", session_fields))["id"] for _ in range(clients)]
    async with MinimalClient(cluster.base_urls[1], cluster.key) as other:
        sizes = await asyncio.gather(*(_read_flood(other, client, session_id, ledger) for session_id in sessions))
    await asyncio.sleep(_SETTLE_SECONDS)
    return min(sizes)


async def _read_flood(other: MinimalClient, client: MinimalClient, session_id: str, ledger: ValidationLedger) -> int:
    async with other.stream(events_path(session_id, deltas=True)) as stream:
        await client.send(session_id, "[[script:flood]]")
        frames = await stream.until_idle(patience=_PATIENCE)
    validate_frames(frames, ledger)
    return sum(len(frame.data) for frame in frames)


async def _run_flood_turn(client: MinimalClient, session_id: str, ledger: ValidationLedger) -> None:
    async with client.stream(events_path(session_id)) as stream:
        await client.send(session_id, "[[script:flood]]")
        validate_frames(await stream.until_idle(patience=_PATIENCE), ledger)


@asynccontextmanager
async def _open_unread_stream(cluster: Cluster, api: int, session_id: str) -> AsyncIterator[None]:
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
