"""Finds processes of a cluster that are still alive: by environment, working directory, arguments or mounts."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CLUSTER_VARIABLE: Final = "FOOTPLATE_CLUSTER"


def find_cluster_processes(cluster_id: str, directory: Path) -> dict[int, str]:
    """Returns the pid and command line of every process that belongs to the cluster.

    A process belongs to it if its environment has the cluster's id, if it works below the cluster's directory, or if
    its arguments name that directory. All three are needed: child processes inherit the id unless it is scrubbed;
    servers overwrite their environment but work in the directory; a worker's death watch only has the directory as an
    argument. Zombies are not found, and need not be.
    """
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            process = Path(entry.path)
            if (
                _has_cluster_variable(process, cluster_id)
                or _has_directory_argument(process, directory)
                or works_below(process, directory)
            ):
                found[int(entry.name)] = _command(process)
    return found


def walk_paths(directory: Path) -> Iterator[Path]:
    """Yields every path below the directory. Skips files that disappear meanwhile, where `Path.rglob` would raise."""
    for parent, directories, files in os.walk(directory):
        yield from (Path(parent, name) for name in (*directories, *files))


def _has_cluster_variable(process: Path, cluster_id: str) -> bool:
    try:
        return f"{CLUSTER_VARIABLE}={cluster_id}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _has_directory_argument(process: Path, directory: Path) -> bool:
    try:
        arguments = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument == bytes(directory) or argument.startswith(bytes(directory) + b"/") for argument in arguments)


def works_below(process: Path, directory: Path) -> bool:
    """Returns whether a process works below the directory.

    Outside of a sandbox its working directory decides; a sandbox has its own paths, so there its mounts decide.
    """
    try:
        if (process / "ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink():
            return any(Path(root).is_relative_to(_path_in_file_system(directory)) for root, _ in _mounts(process))
        return Path(str((process / "cwd").readlink()).removesuffix(" (deleted)")).is_relative_to(directory)
    except OSError:
        return False


def _path_in_file_system(directory: Path) -> Path:
    """Returns the directory's path from the root of its file system, which identifies mounts in every namespace."""
    directory = directory.resolve()
    above = [(root, point) for root, point in _mounts(Path("/proc/self")) if directory.is_relative_to(point)]
    root, point = max(above, key=lambda mount: len(mount[1]))
    return Path(root) / directory.relative_to(point)


def _mounts(process: Path) -> list[tuple[str, str]]:
    """Returns the root within the file system and the mount point of each of the process's mounts."""
    lines = (line.split(" ", 5) for line in (process / "mountinfo").read_text().splitlines())
    return [(fields[3], fields[4]) for fields in lines]


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
