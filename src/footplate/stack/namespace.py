"""A network namespace for a server that has no authentication: whether this machine permits one, and how to use it."""

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from footplate.domain.errors import Unavailable

_MAIN: Final = Path(__file__).with_name("namespace_main.py")
_PATH_LIMIT: Final = 107
"""Bytes that the kernel accepts as the path of a unix socket."""


@cache
def namespace_obstacle() -> str:
    """Why this machine cannot isolate a server; empty if it can. Found out by trying, once in a process."""
    try:
        tried = subprocess.run([sys.executable, "-I", str(_MAIN)], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode == 0:
        return ""
    last = tried.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return last[0] if last else f"exit code {tried.returncode}"


def isolated_command(argv: Sequence[str], *, socket: Path, port: int) -> list[str]:
    return [sys.executable, "-I", str(_MAIN), str(os.getpid()), str(socket), str(port), *argv]


def socket_path(directory: Path, name: str) -> Path:
    """In `directory`, or where that path is too long for a socket, in a directory of ours among the temporary ones."""
    path = directory / name
    if len(os.fsencode(path)) <= _PATH_LIMIT:
        return path
    mark = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"footplate-{os.geteuid()}-{mark}" / name


def make_private(directory: Path) -> None:
    """Raises `Unavailable` where another user could be behind `directory`."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Unavailable(
            f"{directory} belongs to another user, or is no directory.",
            help_text="Remove it, or choose another directory with --data-dir.",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
