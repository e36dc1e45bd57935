"""Finds and ends server processes that an earlier launcher left running, by their program and working directory.

A pid file is not reliable, because another process may have got the same pid. Every server runs in its own data
directory, so a process with the same program and directory must come from an earlier start. The launcher's lock
(`launcher_lock.py`) ensures that no other launcher uses the directory.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_POLL: Final = 0.05


def find_processes(program: Path, directory: Path) -> list[int]:
    """Returns the pids of processes that run `program` with `directory` as their working directory."""
    wanted = (program.resolve().name, str(directory.resolve()))
    return [pid for pid in _pids() if _identity(pid) == wanted]


async def end_processes(
    program: Path, directory: Path, *, stop_signal: signal.Signals, max_seconds: float
) -> list[int]:
    """Ends these processes and waits until they are gone: first with `stop_signal`, then with SIGKILL. Returns
    the pids that were found.
    """
    found = find_processes(program, directory)
    _signal(found, stop_signal)

    async def all_ended() -> bool:
        return not find_processes(program, directory)

    if found and not await wait_until(all_ended, max_seconds):
        _signal(find_processes(program, directory), signal.SIGKILL)
        if not await wait_until(all_ended, max_seconds):
            raise TimeoutError(f"{program.name} in {directory} did not exit after SIGKILL.")
    return found


async def wait_until(condition: Callable[[], Awaitable[bool]], max_seconds: float) -> bool:
    """Polls until `condition` is true, for at most `max_seconds`. Returns whether it became true."""
    try:
        async with asyncio.timeout(max_seconds):
            while not await condition():  # noqa: ASYNC110 - another process cannot set an event here
                await asyncio.sleep(_POLL)
    except TimeoutError:
        return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def _identity(pid: int) -> tuple[str, str] | None:
    proc = Path("/proc") / str(pid)
    try:
        # The kernel adds the suffix when the file was replaced, for example by an upgrade.
        program = str((proc / "exe").readlink()).removesuffix(" (deleted)")
        return Path(program).name, str((proc / "cwd").readlink())
    except OSError:
        return None  # It has ended, or belongs to another user.


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
