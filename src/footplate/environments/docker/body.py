"""Builds the engine's request for a container with only the privileges that a turn needs. Does no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from footplate.environments.docker.runtime import TARGET
from footplate.environments.sandbox.limits import BEFORE
from footplate.environments.sandbox.view import DOORS, READ_ONLY_STATE, STATE, View, protected, seen_at

SOCKET: Final = "/run/footplate.socket"
_TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - of the container
_TO_INSTALL: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""The root capabilities that a package manager needs: access to files of other users, and switching to them."""
_CORE: Final = BEFORE["RLIMIT_CORE"]
_RESOURCES: Final = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NOFILE")
"""RLIMIT_NPROC is not among them: the kernel would count a user's processes of all containers. The cgroup limits them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    image: str
    volumes: Sequence[str]
    """The volumes that the image declares. They are mounted in memory, because on disk they would have no limit."""
    view: View
    user: tuple[int, int]
    network: str
    """The engine's network, used if the view shares a network."""
    runtime: Path
    files: Mapping[str, Path]
    """Files to mount by their path inside: the passwd and group files."""
    labels: Mapping[str, str]
    keeps: bool = False
    """Whether changes to its root file system are retained, to build an image from it. Its user may then be root
    inside.
    """


def process_limits(view: View, *, may_write: bool) -> list[str]:
    limits = view.limits.of_a_process(has_cgroup=True, may_write=may_write)
    return [f"{name}={limits[name]}" for name in _RESOURCES]


def container(wanted: Wanted, socket: Path, command: Sequence[str]) -> dict[str, Any]:
    limits = wanted.view.limits
    return {
        "Image": wanted.image,
        "Entrypoint": list(command),
        "Cmd": [],
        "User": ":".join(map(str, wanted.user)),
        "WorkingDir": "/",
        "Hostname": "footplate",
        # Clears the image's variables that would affect the init process. Commands get the image's values.
        "Env": ["LD_PRELOAD=", "LD_LIBRARY_PATH="],
        "Labels": dict(wanted.labels),
        "Healthcheck": {"Test": ["NONE"]},
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "AutoRemove": not wanted.keeps,
            "Init": False,
            "Privileged": False,
            "ReadonlyRootfs": not wanted.keeps,
            "CapDrop": ["ALL"],
            "CapAdd": list(_TO_INSTALL) if wanted.keeps else [],
            "SecurityOpt": ["no-new-privileges"],
            "NetworkMode": wanted.network if wanted.view.shares_network else "none",
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "LogConfig": {"Type": "none"},
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": int(limits.cpus * 1_000_000_000),
            "PidsLimit": limits.pids,
            "Ulimits": [{"Name": "core", "Soft": _CORE, "Hard": _CORE}],
            "ShmSize": limits.memory,
            "Tmpfs": dict(_in_memory(wanted)),
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": str(source),
                    "Target": target,
                    "ReadOnly": read_only,
                    "BindOptions": {"Propagation": "rprivate"},
                }
                for source, target, read_only in _binds(wanted, socket)
            ],
        },
    }


def sources(wanted: Wanted) -> list[Path]:
    """Returns all host paths that are mounted."""
    return [source for source, _, _ in _binds(wanted, Path(SOCKET))]


def _binds(wanted: Wanted, socket: Path) -> Iterator[tuple[Path, str, bool]]:
    view = wanted.view
    yield wanted.runtime, TARGET, True
    yield socket, SOCKET, False
    for target, path in wanted.files.items():
        yield path, target, True
    if view.doors is not None:
        yield view.doors, DOORS, True
    for name, target in STATE.items():
        yield view.state / name, target, name in READ_ONLY_STATE
    for readable in view.readable:
        yield Path(readable), readable, True
    yield view.tree, view.root, False
    yield from view.shared
    for path, how in protected(view):
        if how != "hidden":
            yield path, seen_at(view, path), how == "read_only"


def _in_memory(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yields the tmpfs mounts, which count as the container's memory."""
    for place in (*_TEMPORARY, *wanted.volumes):
        yield place, f"rw,exec,nosuid,nodev,mode=1777,size={wanted.view.limits.memory}"
    for path, how in protected(wanted.view):
        if how == "hidden":
            yield seen_at(wanted.view, path), "ro,nosuid,nodev,noexec,size=4096"
