"""File locks for mutual exclusion between processes on one host.

The kernel releases a lock when the process that holds it ends.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from footplate.domain.errors import Unavailable

_RETRY_SECONDS: Final = 0.02


@asynccontextmanager
async def hold_lock(path: Path, *, seconds: float) -> AsyncGenerator[None, None]:
    """Holds the lock. Raises `Unavailable` if other processes hold it for longer than `seconds`. The file is never
    removed, because removing it would let two processes hold the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            async with asyncio.timeout(seconds):
                while not _try_lock(descriptor):  # noqa: ASYNC110 - another process holds the lock
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            raise Unavailable(f"Another worker on this host has held the lock {path.name} for {seconds:g} s.") from None
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_directory(path: Path) -> int | None:
    """Returns the descriptor that holds the lock, or None if the lock is taken or the directory does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if _try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None
