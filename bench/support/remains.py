"""Is anything of a cluster still alive? Found by a mark in its environment, its place, or what it is told or shown."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MARK: Final = "FOOTPLATE_CLUSTER"


def of(cluster_id: str, directory: Path) -> dict[int, str]:
    """Pid and command line of every process that carries the mark, or works below the cluster's directory or names it.

    The mark reaches what our processes start unless they scrub it; servers overwrite their environment, but work in
    the directory; a worker's last watch does neither, but is told of it. So it takes all to find all. Zombies have
    none, and need neither memory nor a second look.
    """
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            process = Path(entry.path)
            if _is_marked(process, cluster_id) or _names(process, directory) or works_below(process, directory):
                found[int(entry.name)] = _command(process)
    return found


def below(directory: Path) -> Iterator[Path]:
    """Every file and directory there; what goes while we look is not there. (`Path.rglob` would raise.)"""
    for parent, directories, files in os.walk(directory):
        yield from (Path(parent, name) for name in (*directories, *files))


def _is_marked(process: Path, cluster_id: str) -> bool:
    try:
        return f"{MARK}={cluster_id}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _names(process: Path, directory: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word == bytes(directory) or word.startswith(bytes(directory) + b"/") for word in words)


def works_below(process: Path, directory: Path) -> bool:
    """By its working directory; one in a sandbox, which has paths of its own, by what is mounted there."""
    try:
        if (process / "ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink():
            return any(Path(root).is_relative_to(_on_its_disk(directory)) for root, _ in _mounts(process))
        return Path(str((process / "cwd").readlink()).removesuffix(" (deleted)")).is_relative_to(directory)
    except OSError:
        return False


def _on_its_disk(directory: Path) -> Path:
    """Its path from the root of the file system that it is on: what mounts are known by in every namespace."""
    directory = directory.resolve()
    above = [(root, point) for root, point in _mounts(Path("/proc/self")) if directory.is_relative_to(point)]
    root, point = max(above, key=lambda mount: len(mount[1]))
    return Path(root) / directory.relative_to(point)


def _mounts(process: Path) -> list[tuple[str, str]]:
    """What of its file system is mounted, and where."""
    lines = (line.split(" ", 5) for line in (process / "mountinfo").read_text().splitlines())
    return [(fields[3], fields[4]) for fields in lines]


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
