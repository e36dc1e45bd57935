"""Processes that an earlier launcher left behind, found by what they are: this program, in this directory.

A pid file would name a pid that may be somebody else's by now. Every server works in a data directory of its own, and
whoever runs the same program there can only be an earlier start of it. The launcher's lock on the directory
(`launcher.py`) guarantees that no other launcher is alive that could own them.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_POLL: Final = 0.05


def find(program: Path, directory: Path) -> list[int]:
    """The pids of processes that run `program` with `directory` as their working directory."""
    wanted = (program.resolve().name, str(directory.resolve()))
    return [pid for pid in _pids() if _identity(pid) == wanted]


async def end(program: Path, directory: Path, *, polite: signal.Signals, patience: float) -> list[int]:
    """End them, politely first, and wait until they are gone. Returns whom it found."""
    found = find(program, directory)
    _signal(found, polite)

    async def gone() -> bool:
        return not find(program, directory)

    if found and not await wait_until(gone, patience):
        _signal(find(program, directory), signal.SIGKILL)
        if not await wait_until(gone, patience):
            raise TimeoutError(f"{program.name} in {directory} does not end.")
    return found


async def wait_until(condition: Callable[[], Awaitable[bool]], patience: float) -> bool:
    """Whether `condition` came true in time."""
    try:
        async with asyncio.timeout(patience):
            while not await condition():  # noqa: ASYNC110 - other processes set no event of ours
                await asyncio.sleep(_POLL)
    except TimeoutError:
        return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def _identity(pid: int) -> tuple[str, str] | None:
    proc = Path("/proc") / str(pid)
    try:
        # The kernel adds the suffix when the file was replaced, by an upgrade for one.
        program = str((proc / "exe").readlink()).removesuffix(" (deleted)")
        return Path(program).name, str((proc / "cwd").readlink())
    except OSError:
        return None  # It has ended, or belongs to somebody else.


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
