"""Removes a directory tree that an agent created, even if it is nested very deeply or its permissions were changed.

The programs `rm` and `chmod` do the work. They do not follow symbolic links inside the directory, and can handle ten
thousand nested directories. Python's `shutil.rmtree` would exceed the recursion limit.
"""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path


def remove_directory(directory: Path) -> bool:
    """Removes the directory. Returns False if something remains; a directory that does not exist counts as removed."""
    if _run(_rm_command(directory)):
        return True
    _run(_chmod_command(directory))
    return _run(_rm_command(directory))


async def remove_directory_async(directory: Path) -> bool:
    """Does the same as `remove_directory` without blocking the event loop. On cancellation it stops and leaves the
    rest in place.
    """
    if await _run_async(_rm_command(directory)):
        return True
    await _run_async(_chmod_command(directory))
    return await _run_async(_rm_command(directory))


def _rm_command(directory: Path) -> Sequence[str]:
    return ["rm", "-rf", "--one-file-system", "--", str(directory)]


def _chmod_command(directory: Path) -> Sequence[str]:
    return ["chmod", "-R", "u+rwx", "--", str(directory)]


def _run(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0


async def _run_async(argv: Sequence[str]) -> bool:
    process = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.DEVNULL)
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
