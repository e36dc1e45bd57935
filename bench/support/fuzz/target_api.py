"""The api under attack: its address, its existing resources, and whether its state is as before."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.fuzz import watched_api
from bench.support.minimal_client import MinimalClient, events_path
from bench.support.speed.measurement import ROOT
from footplate.stack import PythonService
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.orphan_processes import wait_until
from footplate.stack.services.python_service import is_http_ok

_PATIENCE: Final = 30.0
_SETTLED: Final = 20.0
"""Longer than the server waits for a client to confirm that a WebSocket closes."""
_ESTABLISHED: Final = "01"
_UNEXPECTED: Final = ("Traceback", "Exception in ASGI", "unexpected error", "never awaited", "never retrieved")


@dataclass(frozen=True, slots=True)
class Seat:
    """Existing resources, by the names of path parameters."""

    agent_id: str
    environment_id: str
    session_id: str
    turn_id: str

    def named(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Target:
    program: PythonService
    url: str
    key: str
    report: Path

    async def seats(self, count: int, *, key: str | None = None) -> Sequence[Seat]:
        """Creates agents, environments and sessions with one turn each."""
        async with MinimalClient(self.url, key or self.key) as lean:
            return [await self._seat(lean) for _ in range(count)]

    async def _seat(self, lean: MinimalClient) -> Seat:
        seat = await lean.create_session_fields()
        session_id = (await lean.post("/v1/sessions", seat))["id"]
        async with lean.stream(events_path(session_id)) as stream:
            await lean.send(session_id, "Hello")
            await stream.until_idle()
        (turn,) = (await lean.get(f"/v1/sessions/{session_id}/turns"))["data"]
        return Seat(seat["agent"], seat["environment_id"], session_id, turn["id"])

    async def list_tasks(self) -> Counter[str]:
        """Returns the tasks in the api's event loop."""
        self.report.unlink(missing_ok=True)
        self.program.send_signal(signal.SIGUSR1)
        written = await wait_until(self._written, _PATIENCE)
        require(holds=written, otherwise="the api's event loop does not respond")
        return Counter(orjson.loads(self.report.read_bytes()))

    async def wait_settled(self, before: Mapping[str, int]) -> "RemainingState":
        """Waits until everything in progress had time to end, and returns the tasks and connections that remain."""
        await wait_until(partial(self._is_unchanged, before), _SETTLED)
        return RemainingState(await self.list_tasks() - Counter(before), self._connections(), self._failures_in_log())

    async def _written(self) -> bool:
        return self.report.exists()

    async def _is_unchanged(self, before: Mapping[str, int]) -> bool:
        await asyncio.sleep(0.2)
        return self._connections() == 0 and not await self.list_tasks() - Counter(before)

    def _connections(self) -> int:
        """Counts the open connections to the api."""
        port = urlsplit(self.url).port
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        own = [fields for fields in lines if int(fields[1].split(":")[1], 16) == port]
        return sum(fields[3] == _ESTABLISHED for fields in own)

    def _failures_in_log(self) -> Sequence[str]:
        """Returns the log lines that report unexpected errors."""
        lines = self.program.log.read_text(errors="replace").splitlines()
        return [
            "\n".join(lines[max(0, number - 2) : number + 40])
            for number, line in enumerate(lines)
            if any(mark in line for mark in _UNEXPECTED)
        ]


@dataclass(frozen=True, slots=True)
class RemainingState:
    tasks: Counter[str]
    connections: int
    logged: Sequence[str]


@asynccontextmanager
async def open_target(cluster: Cluster) -> AsyncIterator[Target]:
    port = find_free_port()
    report = cluster.directory / "tasks.json"
    program = PythonService(
        cluster.directory / "watched-api",
        title="watched api",
        module=watched_api.__name__,
        arguments=(str(report),),
        environment={
            **cluster.environment(),
            "FOOTPLATE_HOST": LOOPBACK,
            "FOOTPLATE_PORT": str(port),
            "PYTHONPATH": str(ROOT),
        },
        log_file=cluster.directory / "logs" / "watched-api.log",
        probe=partial(is_http_ok, LOOPBACK, port, "/readyz"),
    )
    await program.start()
    try:
        yield Target(program, f"http://{LOOPBACK}:{port}", cluster.key, report)
    finally:
        await program.stop()
