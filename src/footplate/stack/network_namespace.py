"""Isolates a server that has no authentication in its own network namespace, if the kernel permits it."""

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

_MAIN: Final = Path(__file__).with_name("network_namespace_main.py")
_MAX_SOCKET_PATH: Final = 107
"""Maximum length in bytes of a unix socket's path."""


@cache
def namespace_obstacle() -> str:
    """Returns why this machine cannot isolate a server, or an empty string if it can. Tries it once per process."""
    try:
        attempt = subprocess.run([sys.executable, "-I", str(_MAIN)], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if attempt.returncode == 0:
        return ""
    last_line = attempt.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return last_line[0] if last_line else f"exit code {attempt.returncode}"


def isolated_command(argv: Sequence[str], *, socket: Path, port: int) -> list[str]:
    return [sys.executable, "-I", str(_MAIN), str(os.getpid()), str(socket), str(port), *argv]


def socket_path(directory: Path, name: str) -> Path:
    """Returns a path in `directory`, or in a private temporary directory if that path is too long for a socket."""
    path = directory / name
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"footplate-{os.geteuid()}-{digest}" / name


def make_private_directory(directory: Path) -> None:
    """Creates `directory` for this user only. Raises `Unavailable` if it could be controlled by another user."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise Unavailable(
            f"{directory} belongs to another user, or is not a directory.",
            help_text="Remove it, or choose another directory with --data-dir.",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        directory.chmod(0o700)
