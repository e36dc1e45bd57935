"""Builds the Docker API request for a container that has only the privileges that a turn needs. This module does no
I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from footplate.environments.docker.portable_python import MOUNT_TARGET
from footplate.environments.isolation.filesystem_view import (
    READ_ONLY_STATE,
    SOCKETS_MOUNT,
    STATE_MOUNTS,
    FilesystemView,
    find_protected_paths,
    path_inside,
)
from footplate.environments.isolation.resource_limits import PRESET_LIMITS

SOCKET_TARGET: Final = "/run/footplate.socket"
_TEMPORARY_DIRECTORIES: Final = ("/tmp", "/var/tmp")  # noqa: S108 - of the container
_INSTALL_CAPABILITIES: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""The root capabilities that a package manager needs: access to files of other users, and switching to them."""
_CORE: Final = PRESET_LIMITS["RLIMIT_CORE"]
_LIMIT_NAMES: Final = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NOFILE")
"""RLIMIT_NPROC is not among them: the kernel would count a user's processes of all containers. The cgroup limits them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    image: str
    volumes: Sequence[str]
    """The volumes that the image declares. They are mounted in memory, because on disk they would have no limit."""
    view: FilesystemView
    user: tuple[int, int]
    network: str
    """The engine's network, used if the view shares a network."""
    runtime: Path
    files: Mapping[str, Path]
    """Files to mount by their path inside: the passwd and group files."""
    labels: Mapping[str, str]
    is_image_build: bool = False
    """Whether changes to its root file system are retained, to build an image from it. Its user may then be root
    inside.
    """


def process_limits(view: FilesystemView, *, may_write: bool) -> list[str]:
    limits = view.limits.process_limits(has_cgroup=True, may_write=may_write)
    return [f"{name}={limits[name]}" for name in _LIMIT_NAMES]


def build_request(spec: ContainerSpec, socket: Path, command: Sequence[str]) -> dict[str, Any]:
    limits = spec.view.limits
    return {
        "Image": spec.image,
        "Entrypoint": list(command),
        "Cmd": [],
        "User": ":".join(map(str, spec.user)),
        "WorkingDir": "/",
        "Hostname": "footplate",
        # Clears the image's variables that would affect the init process. Commands get the image's values.
        "Env": ["LD_PRELOAD=", "LD_LIBRARY_PATH="],
        "Labels": dict(spec.labels),
        "Healthcheck": {"Test": ["NONE"]},
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "AutoRemove": not spec.is_image_build,
            "Init": False,
            "Privileged": False,
            "ReadonlyRootfs": not spec.is_image_build,
            "CapDrop": ["ALL"],
            "CapAdd": list(_INSTALL_CAPABILITIES) if spec.is_image_build else [],
            "SecurityOpt": ["no-new-privileges"],
            "NetworkMode": spec.network if spec.view.shares_network else "none",
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "LogConfig": {"Type": "none"},
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": int(limits.cpus * 1_000_000_000),
            "PidsLimit": limits.pids,
            "Ulimits": [{"Name": "core", "Soft": _CORE, "Hard": _CORE}],
            "ShmSize": limits.memory,
            "Tmpfs": dict(_tmpfs_mounts(spec)),
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": str(source),
                    "Target": target,
                    "ReadOnly": read_only,
                    "BindOptions": {"Propagation": "rprivate"},
                }
                for source, target, read_only in _bind_mounts(spec, socket)
            ],
        },
    }


def mounted_sources(spec: ContainerSpec) -> list[Path]:
    """Returns all host paths that are mounted."""
    return [source for source, _, _ in _bind_mounts(spec, Path(SOCKET_TARGET))]


def _bind_mounts(spec: ContainerSpec, socket: Path) -> Iterator[tuple[Path, str, bool]]:
    view = spec.view
    yield spec.runtime, MOUNT_TARGET, True
    yield socket, SOCKET_TARGET, False
    for target, path in spec.files.items():
        yield path, target, True
    if view.sockets is not None:
        yield view.sockets, SOCKETS_MOUNT, True
    for name, target in STATE_MOUNTS.items():
        yield view.state / name, target, name in READ_ONLY_STATE
    for readable in view.readable:
        yield Path(readable), readable, True
    yield view.tree, view.root, False
    yield from view.project_mounts
    for path, protection in find_protected_paths(view):
        if protection != "hidden":
            yield path, path_inside(view, path), protection == "read_only"


def _tmpfs_mounts(spec: ContainerSpec) -> Iterator[tuple[str, str]]:
    """Yields the tmpfs mounts, which count as the container's memory."""
    for directory in (*_TEMPORARY_DIRECTORIES, *spec.volumes):
        yield directory, f"rw,exec,nosuid,nodev,mode=1777,size={spec.view.limits.memory}"
    for path, protection in find_protected_paths(spec.view):
        if protection == "hidden":
            yield path_inside(spec.view, path), "ro,nosuid,nodev,noexec,size=4096"
