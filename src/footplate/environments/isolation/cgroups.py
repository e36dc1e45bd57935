"""Limits the memory, processes and CPU time of a whole sandbox with control groups (version 1, version 2, or both).

Every sandbox has its own control group below the worker's group, named after the sandbox's lease. If the worker may not
create control groups, `detect` raises an error with the reason. The sandbox then has only the weaker limits per process
(see `resource_limits`).
"""

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.leases import new_lease_id

CONTROLLERS: Final = ("memory", "pids", "cpu")
PARENT_GROUP: Final = "footplate"
_PERIOD: Final = 100_000
_V2: Final = "cgroup2"
_WEIGHTS: Final = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}


class NoCgroups(Exception):
    """Control groups cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy, and the path of the worker's group or of a sandbox's group in it."""

    path: Path
    controllers: tuple[str, ...]
    version: int


class Cgroup:
    """The control group of one sandbox, in every hierarchy."""

    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        self._hierarchies = hierarchies

    @classmethod
    def of_process(cls, pid: int) -> Self:
        """Returns the group that a process is in, as far as it is visible from here."""
        return cls(_read_hierarchies(Path("/proc/self/mountinfo"), Path(f"/proc/{pid}/cgroup")))

    def attach(self, pid: int) -> None:
        for hierarchy in self._hierarchies:
            (hierarchy.path / "cgroup.procs").write_text(str(pid))

    def limit_sockets(self, limits: SandboxLimits) -> None:
        """Limits socket buffers, which a docker engine leaves unlimited if they do not count as memory."""
        for hierarchy in self._hierarchies:
            if "memory" in hierarchy.controllers and hierarchy.version == 1:
                _limit_sockets_v1(hierarchy.path, limits)

    def memory_kill_count(self) -> int:
        """Returns how many processes the kernel killed because the group was out of memory."""
        for hierarchy in self._hierarchies:
            if "memory" in hierarchy.controllers:
                name = "memory.events" if hierarchy.version == 2 else "memory.oom_control"  # noqa: PLR2004
                with suppress(OSError):
                    lines = dict(line.split() for line in (hierarchy.path / name).read_text().splitlines())
                    return int(lines.get("oom_kill", 0))
        return 0

    def throttle_count(self) -> int:
        """Returns how often the group was throttled because it had used up its CPU quota. Raises `OSError`."""
        path, _ = self._cpu_hierarchy()
        return int(dict(line.split() for line in (path / "cpu.stat").read_text().splitlines())["nr_throttled"])

    def set_cpu_weight(self, share: float) -> None:
        """Sets the CPU weight against other groups, as a share of the default weight. Raises `OSError`."""
        path, version = self._cpu_hierarchy()
        name, full = _WEIGHTS[version]
        (path / name).write_text(str(int(full * share)))

    def _cpu_hierarchy(self) -> tuple[Path, int]:
        for hierarchy in self._hierarchies:
            if "cpu" in hierarchy.controllers:
                return hierarchy.path, hierarchy.version
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def remove(self, *, patience: float = 5.0) -> bool:
        """Removes the group. Waits for a while, because the kernel may take a moment to notice that its processes are
        gone.
        """
        end = time.monotonic() + patience
        return all(remove_group(hierarchy.path, end) for hierarchy in self._hierarchies)


class CgroupFactory:
    """Creates control groups for sandboxes. Create it with `detect`."""

    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        self._hierarchies = hierarchies

    @property
    def description(self) -> str:
        versions = sorted({hierarchy.version for hierarchy in self._hierarchies})
        return "cgroup " + " and ".join(f"v{version}" for version in versions)

    @classmethod
    def detect(cls, *, proc: Path = Path("/proc/self")) -> Self:
        """Finds the usable hierarchies. Proves that they work by creating and removing a group. Raises `NoCgroups`."""
        found = cls([_create_parent(hierarchy) for hierarchy in _read_hierarchies(proc / "mountinfo", proc / "cgroup")])
        missing = set(CONTROLLERS) - {name for hierarchy in found._hierarchies for name in hierarchy.controllers}
        if missing:
            raise NoCgroups(f"no cgroup hierarchy has the controllers {', '.join(sorted(missing))}")
        found.create_cgroup(new_lease_id(), SandboxLimits()).remove()
        return found

    def create_cgroup(self, name: str, limits: SandboxLimits) -> Cgroup:
        created = []
        try:
            for hierarchy in self._hierarchies:
                path = hierarchy.path / name
                path.mkdir()
                created.append(Hierarchy(path, hierarchy.controllers, hierarchy.version))
                for controller in hierarchy.controllers:
                    _LIMIT_WRITERS[hierarchy.version, controller](path, limits)
        except OSError as error:
            Cgroup(created).remove(patience=0)
            raise NoCgroups(f"{error.filename}: {error.strerror}") from error
        return Cgroup(created)

    @property
    def paths(self) -> list[Path]:
        """The directories of the groups. The reaper removes groups there that killed workers left behind."""
        return [hierarchy.path for hierarchy in self._hierarchies]


def _read_hierarchies(mounts_file: Path, cgroup_file: Path) -> list[Hierarchy]:
    own: dict[str, str] = {}
    for line in cgroup_file.read_text().splitlines():
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(",") if names else [_V2], path))
    found = []
    for line in mounts_file.read_text().splitlines():
        mounted, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        root, point = mounted.split(" ")[3:5]
        wanted = tuple(name for name in CONTROLLERS if name in options.split(","))
        if kind == "cgroup" and wanted and wanted[0] in own:
            found.append(Hierarchy(_group_path(point, root, own[wanted[0]]), wanted, 1))
        elif kind == _V2 and _V2 in own:
            group_path = _group_path(point, root, own[_V2])
            offered = (group_path / "cgroup.controllers").read_text().split() if group_path.is_dir() else []
            if wanted := tuple(name for name in CONTROLLERS if name in offered):
                found.append(Hierarchy(group_path, wanted, 2))
    return found


def _group_path(point: str, root: str, path: str) -> Path:
    below = path.removeprefix(root) if root != "/" else path
    return Path(point, below.lstrip("/"))


def _create_parent(hierarchy: Hierarchy) -> Hierarchy:
    """Creates Footplate's parent group, whose children may use the controllers."""
    parent = hierarchy.path / PARENT_GROUP
    try:
        if hierarchy.version == 2:  # noqa: PLR2004
            _enable_controllers(hierarchy.path, hierarchy.controllers)
        parent.mkdir(exist_ok=True)
        if hierarchy.version == 2:  # noqa: PLR2004
            _enable_controllers(parent, hierarchy.controllers)
    except OSError as error:
        raise NoCgroups(f"{error.filename}: {error.strerror}") from error
    return Hierarchy(parent, hierarchy.controllers, hierarchy.version)


def _enable_controllers(path: Path, controllers: Sequence[str]) -> None:
    control = path / "cgroup.subtree_control"
    missing = set(controllers) - set(control.read_text().split())
    if missing:
        control.write_text(" ".join(f"+{name}" for name in sorted(missing)))


def remove_group(path: Path, end: float) -> bool:
    """Retries until `end` (monotonic clock), because a group can be removed only after its last process is gone."""
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        else:
            return True


def _limit_memory_v1(path: Path, limits: SandboxLimits) -> None:
    (path / "memory.limit_in_bytes").write_text(str(limits.memory))
    swap = path / "memory.memsw.limit_in_bytes"
    if swap.exists():
        swap.write_text(str(limits.memory))
    _limit_sockets_v1(path, limits)


def _limit_sockets_v1(path: Path, limits: SandboxLimits) -> None:
    """Limits socket buffers. Version 1 does not count them as memory, and the machine has one pool for all
    connections.
    """
    sockets = path / "memory.kmem.tcp.limit_in_bytes"
    if sockets.exists():
        sockets.write_text(str(limits.socket_memory))


def _limit_memory_v2(path: Path, limits: SandboxLimits) -> None:
    (path / "memory.max").write_text(str(limits.memory))
    swap = path / "memory.swap.max"
    if swap.exists():
        swap.write_text("0")


def _limit_pids(path: Path, limits: SandboxLimits) -> None:
    (path / "pids.max").write_text(str(limits.pids))


def _limit_cpu_v1(path: Path, limits: SandboxLimits) -> None:
    (path / "cpu.cfs_period_us").write_text(str(_PERIOD))
    (path / "cpu.cfs_quota_us").write_text(str(int(limits.cpus * _PERIOD)))


def _limit_cpu_v2(path: Path, limits: SandboxLimits) -> None:
    (path / "cpu.max").write_text(f"{int(limits.cpus * _PERIOD)} {_PERIOD}")


_LIMIT_WRITERS: Final[dict[tuple[int, str], Callable[[Path, SandboxLimits], None]]] = {
    (1, "memory"): _limit_memory_v1,
    (2, "memory"): _limit_memory_v2,
    (1, "pids"): _limit_pids,
    (2, "pids"): _limit_pids,
    (1, "cpu"): _limit_cpu_v1,
    (2, "cpu"): _limit_cpu_v2,
}
