"""Removes a directory that an agent filled, however deeply it is nested and whatever permissions the agent removed.

Uses `rm` and `chmod`, which follow no symbolic link on the way down and handle ten thousand levels. Python's own
`shutil.rmtree` fails at its recursion limit.
"""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path


def remove(directory: Path) -> bool:
    """Removes the directory. Returns False if something remains; a directory that does not exist counts as removed."""
    if _run(_rm(directory)):
        return True
    _run(_chmod(directory))
    return _run(_rm(directory))


async def removed(directory: Path) -> bool:
    """Does the same as `remove_directory` without blocking the event loop. On cancellation it stops and leaves the
    rest in place.
    """
    if await _ran(_rm(directory)):
        return True
    await _ran(_chmod(directory))
    return await _ran(_rm(directory))


def _rm(directory: Path) -> Sequence[str]:
    return ["rm", "-rf", "--one-file-system", "--", str(directory)]


def _chmod(directory: Path) -> Sequence[str]:
    return ["chmod", "-R", "u+rwx", "--", str(directory)]


def _run(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0


async def _ran(argv: Sequence[str]) -> bool:
    process = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.DEVNULL)
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
