"""Creates temporary directories for one operation, inside a git directory of the host that no agent can access."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from footplate.trees.file_locks import lock_directory

_PREFIX: Final = "work-"


@contextmanager
def scratch_directory(git_dir: Path) -> Iterator[Path]:
    """Creates a scratch directory, after removing those of killed processes. A directory of a worker that is suspended
    stays, because the worker may resume at any time. So each directory is locked, and the lock ends with its process.
    Process ids would not work: workers in several containers may share the disk, and each container has its own ids.
    """
    for abandoned in git_dir.glob(f"{_PREFIX}*"):
        if (abandoned_lock := lock_directory(abandoned)) is not None:
            shutil.rmtree(abandoned, ignore_errors=True)
            os.close(abandoned_lock)
    directory, lock = _create_locked(git_dir)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _create_locked(git_dir: Path) -> tuple[Path, int]:
    """Creates and locks a directory. Before it is locked, another process may mistake it for an abandoned one and
    remove it. Then another directory is created.
    """
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=git_dir))
        lock = lock_directory(directory)
        if lock is not None and directory.exists():
            return directory, lock
        if lock is not None:
            os.close(lock)
