"""Is anything of a cluster still alive? Found by the mark in its environment, or by where it works."""

import os
from pathlib import Path
from typing import Final

MARK: Final = "FOOTPLATE_CLUSTER"


def of(cluster_id: str, directory: Path) -> dict[int, str]:
    """Pid and command line of every process that carries the mark or works below the cluster's directory.

    The mark reaches what our processes start unless they scrub it; servers overwrite their environment, but work in
    the directory. So it takes both to find all. Zombies have neither, and need neither memory nor a second look.
    """
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            process = Path(entry.path)
            if _is_marked(process, cluster_id) or _works_below(process, directory):
                found[int(entry.name)] = _command(process)
    return found


def _is_marked(process: Path, cluster_id: str) -> bool:
    try:
        return f"{MARK}={cluster_id}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _works_below(process: Path, directory: Path) -> bool:
    try:
        return Path(str((process / "cwd").readlink()).removesuffix(" (deleted)")).is_relative_to(directory)
    except OSError:
        return False


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
