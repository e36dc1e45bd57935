"""Searches this machine for what turns left: processes, control groups, containers, namespaces, sockets, directories.

While turns run, it records their lease ids, control groups and namespaces. Afterwards it searches for exactly these,
and for every process that carries the commands' marker or has a session's directory mounted.
"""

import asyncio
import os
import stat
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.support import cluster_processes
from bench.support.cluster import Cluster
from footplate.environments import leases
from footplate.environments.docker.engine_api import connect_engine
from footplate.environments.leases import LeaseRecord
from footplate.environments.processes import process_identity
from footplate.environments.reaper.expired_lease_reaper import TRIAL_PREFIX

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_NAMESPACES: Final = ("pid", "mnt", "net", "ipc", "uts", "user")


@dataclass(slots=True)
class Orphans:
    processes: list[str] = field(default_factory=list)
    cgroups: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    sockets: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)

    @property
    def by_kind(self) -> dict[str, list[str]]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: things for name, things in found.items() if things}


class OrphanSearch:
    def __init__(self, cluster: Cluster, mark: str, *, engine: str = "") -> None:
        """`engine` is the address of a container engine that only this cluster uses."""
        self._cluster = cluster
        self._mark = mark.encode()
        self._data = cluster.directory / "data"
        self._leases = self._data / leases.LEASES_DIRECTORY
        self.lease_ids: set[str] = set()
        self.groups: set[Path] = set()
        self.namespaces: dict[str, int] = {}
        """The time when each was last seen, in ticks since boot."""
        self.guardians: dict[str, int] = {}
        self.engine = engine

    def record_turns(self) -> None:
        """Records the lease ids, control groups and namespaces of the running turns."""
        for directory in self._entries():
            self.lease_ids.add(directory.name)
            if record := LeaseRecord.read(directory):
                self.groups.update(Path(group) for group in record.groups)
                self.guardians[directory.name] = record.guardian.pid
        own = _namespaces("self")
        seen = {name for pid in self._processes() for name in _namespaces(pid) - own}
        self.namespaces |= dict.fromkeys(seen, int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS))

    def running_lease_ids(self) -> list[str]:
        """Returns the lease ids of the running turns."""
        return [directory.name for directory in self._entries()]

    def find_orphans(self) -> Orphans:
        return Orphans(
            processes=[f"{pid} {_command(pid)}" for pid in self._processes()],
            cgroups=[str(group) for group in sorted(self.groups) if group.exists()],
            containers=asyncio.run(_containers(self.engine)) if self.engine else [],
            namespaces=self._held_namespaces(),
            sockets=self._sockets(),
            directories=[str(path) for path in (*self._entries(), *_abandoned_trials())],
        )

    def _processes(self) -> list[str]:
        programs = [*self._cluster.workers, *self._cluster.apis]
        ours = {str(program.pid) for program in programs if program.is_running}
        watched = {str(worker.pid).encode() for worker in self._cluster.workers if worker.is_running}
        return [pid for pid in _pids() if pid not in ours and self._is_orphan(pid, watched)]

    def _is_orphan(self, pid: str, living_workers: set[bytes]) -> bool:
        arguments = _read_strings(pid, "cmdline")
        if any(b"death_watch" in argument for argument in arguments) and str(self._data).encode() in arguments:
            return living_workers.isdisjoint(arguments)  # the death watch of a living worker is no orphan
        carried = {text.decode(errors="replace") for text in arguments}
        variables = {text.decode(errors="replace").partition("=")[2] for text in _read_strings(pid, "environ")}
        return (
            self._mark in arguments
            or not self.lease_ids.isdisjoint(carried | variables)
            or cluster_processes.works_below(Path("/proc", pid), self._data)
        )

    def _held_namespaces(self) -> list[str]:
        """Returns the recorded namespaces that a process still uses or holds open by a descriptor.

        The kernel reuses the number of a namespace that is gone. So only processes count that started before the
        namespace was last seen; anything that a survivor starts later is found as a process.
        """
        held = {name for name in _descriptors("self") if name in self.namespaces}
        for pid in _pids():
            started = process_identity.read_start_time(int(pid))
            if started is not None:
                named = (_namespaces(pid) | _descriptors(pid)) & self.namespaces.keys()
                held |= {name for name in named if started < self.namespaces[name]}
        return sorted(held)

    def _sockets(self) -> list[str]:
        bound = [
            line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if str(self._data) in line
        ]
        files = [str(path) for path in cluster_processes.walk_paths(self._leases) if _is_socket(path)]
        return sorted({*bound, *files})

    def _entries(self) -> list[Path]:
        try:
            return list(self._leases.iterdir())
        except FileNotFoundError:
            return []


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


async def _containers(engine: str) -> list[str]:
    """Returns all containers of the engine, running or not."""
    async with connect_engine(engine) as docker:
        return [f"{entry['Names'][0]} {entry['State']}" for entry in await docker.containers.list(all=1)]


def _abandoned_trials() -> list[Path]:
    """Returns the sandbox trial directories whose creator has exited."""
    found = []
    for path in Path(tempfile.gettempdir()).glob(f"{TRIAL_PREFIX}*"):
        maker = leases.creator_of(path.name.removeprefix(TRIAL_PREFIX))
        if maker is not None and not maker.alive:
            found.append(path)
    return found


def _namespaces(pid: str) -> set[str]:
    try:
        return {str(Path("/proc", pid, "ns", name).readlink()) for name in _NAMESPACES}
    except OSError:
        return set()


def _descriptors(pid: str) -> set[str]:
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            found.add(str(Path(entry.path).readlink()))
    except OSError:
        return found
    return found


def _pids() -> list[str]:
    """Returns the pids of living processes. Zombies are excluded: they hold nothing and only wait for their parent."""
    return [str(pid) for pid in process_identity.list_pids() if process_identity.read_start_time(pid) is not None]


def _read_strings(pid: str, name: str) -> list[bytes]:
    try:
        return Path("/proc", pid, name).read_bytes().split(b"\0")
    except OSError:
        return []


def _command(pid: str) -> str:
    return b" ".join(_read_strings(pid, "cmdline")).decode(errors="replace")[:200]
