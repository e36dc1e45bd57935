"""A file lock that allows only one launcher per data directory.

The kernel releases the lock when the launcher process ends, even if it is killed.
"""

import fcntl
import os
from pathlib import Path

from footplate.domain.errors import Conflict


class LauncherLock:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "lock"
        self._file: int | None = None

    def acquire(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode().strip() or "unknown"
            os.close(file)
            raise Conflict(
                f"Another launcher (process {holder}) is using {self._path.parent}.",
                help_text="Stop that launcher first, or choose another directory with --data-dir.",
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
