"""Finds processes of a turn that outlive its worker, by descent and by working directory, however they hide."""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bench.support import cluster_processes
from bench.support.cluster import Cluster

LIMIT: Final = 5.0
_RECORD_INTERVAL: Final = 0.2
_POLL: Final = 0.05
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_DEAD: Final = frozenset({"Z", "X"})


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    started: int
    """Clock ticks since boot. Together with the pid it identifies one process."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    processes: int
    """How many processes the dead worker's turns had when they were last seen."""
    seconds: float
    """Seconds until the last of them was gone."""
    alive: list[str]
    """Processes that lived longer than the limit."""


class ProcessTracker:
    """Records the processes that the workers' turns start while it is open."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._workspaces = cluster.directory / "data" / "workspaces"
        self._owned: dict[int, set[tuple[int, int]]] = {}
        self._latest: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._earlier: set[int] = set()
        """Processes that worked in the workspaces before, such as those of a container of the operator."""

    async def __aenter__(self) -> Self:
        self._earlier = {pid for pid in _read_process_table() if self._works_for_a_turn(pid)}
        self._task = asyncio.create_task(self._keep_recording())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    def record_processes(self) -> None:
        """Records the descendants of the living workers."""
        table = _read_process_table()
        for pid in self._workers():
            found = _descendants(table, {pid})
            self._owned.setdefault(pid, set()).update((process.pid, process.started) for process in found)
            self._latest[pid] = len(found)

    async def wait_until_gone(self, worker: int) -> Aftermath:
        """Waits until the processes of the worker that just died are gone, or the limit is over."""
        died = time.clock_gettime(time.CLOCK_BOOTTIME)
        owned, count = self._owned.pop(worker, set()), self._latest.pop(worker, 0)
        while True:
            alive = self._alive(owned, int(died * _TICKS))
            seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - died
            if not alive or seconds > LIMIT:
                return Aftermath(count, seconds, [_describe(process) for process in alive])
            await asyncio.sleep(_POLL)

    def _alive(self, owned: set[tuple[int, int]], died: int) -> list[_Process]:
        table = _read_process_table()
        ignored = self._earlier | {process.pid for process in _descendants(table, set(self._workers()))}
        return [
            process
            for process in table.values()
            if ((process.pid, process.started) in owned and not _is_death_watch(process.pid))
            or (process.pid not in ignored and process.started <= died and self._works_for_a_turn(process.pid))
        ]

    def _works_for_a_turn(self, pid: int) -> bool:
        return cluster_processes.works_below(Path(f"/proc/{pid}"), self._workspaces)

    def _workers(self) -> list[int]:
        return [worker.pid for worker in self._cluster.workers if worker.is_running and worker.pid is not None]

    async def _keep_recording(self) -> None:
        while True:
            self.record_processes()
            await asyncio.sleep(_RECORD_INTERVAL)


def _is_death_watch(pid: int) -> bool:
    """Whether the process is the worker's death watch, which cleans up after the worker and then exits."""
    with suppress(OSError):
        return b"death_watch" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _read_process_table() -> dict[int, _Process]:
    table = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                fields = Path(entry.path, "stat").read_text().rpartition(") ")[2].split()
                if fields[0] not in _DEAD:
                    table[int(entry.name)] = _Process(int(entry.name), int(fields[1]), int(fields[19]))
    return table


def _descendants(table: dict[int, _Process], roots: set[int]) -> list[_Process]:
    found: list[_Process] = []
    front = roots
    while front:
        children = [process for process in table.values() if process.parent in front]
        found += children
        front = {process.pid for process in children}
    return found


def _describe(process: _Process) -> str:
    with suppress(OSError):
        return f"{process.pid} {Path(f'/proc/{process.pid}/cmdline').read_bytes().replace(bytes(1), b' ').decode()!r}"
    return str(process.pid)
