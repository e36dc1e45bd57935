"""Removes a directory that an agent filled: as deep as it likes, with rights that it took from itself.

By `rm` and `chmod`, which follow no link on their way down and do not mind ten thousand levels; Python's own gives up
at its recursion limit.
"""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path


def remove(directory: Path) -> bool:
    """False if something is left. Nothing there is nothing left."""
    if _run(_rm(directory)):
        return True
    _run(_chmod(directory))
    return _run(_rm(directory))


async def removed(directory: Path) -> bool:
    """The same beside other work, however long it takes. Who is cancelled ends it, and leaves the rest."""
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
