"""Identifies processes by pid and start time, and finds and kills the processes that are labelled with a lease id.

The pair of pid and start time is never reused while the machine runs. This module imports little, because the death
watch, a small process next to every worker, loads it.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEASE_VARIABLE: Final = "FOOTPLATE_LEASE_ID"
"""Set for commands that only their guardian holds together, without a sandbox or a container."""
PROC: Final = Path("/proc")
_DEAD: Final = frozenset({"Z", "X"})
_RETRY_INTERVAL: Final = 0.01


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    started: int
    """In clock ticks since the machine booted."""

    @property
    def alive(self) -> bool:
        return read_start_time(self.pid) == self.started


NO_PROCESS: Final = ProcessIdentity(0, 0)


def current_process() -> ProcessIdentity:
    return ProcessIdentity(os.getpid(), read_start_time(os.getpid()) or 0)


def identify_process(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, read_start_time(pid) or 0)


def read_start_time(pid: int) -> int | None:
    """Returns the start time. None if the process does not exist, or is a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return None
    return None if fields[0].decode() in _DEAD else int(fields[19])


def find_by_lease(lease_id: str) -> list[ProcessIdentity]:
    """Returns the processes that have the lease id as an argument of their command line, or in their environment. Forks
    of a guardian have the guardian's command line.
    """
    lease_bytes = lease_id.encode()
    variable = LEASE_VARIABLE.encode() + b"=" + lease_bytes
    found = (
        identify_process(pid)
        for pid in list_pids()
        if lease_bytes in _read_arguments(pid, "cmdline") or variable in _read_arguments(pid, "environ")
    )
    return [candidate for candidate in found if candidate.started]


def list_pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir(PROC) if entry.name.isdigit() and int(entry.name) != os.getpid()]


def kill_until_gone(find: Callable[[], Iterable[ProcessIdentity]], *, patience: float) -> tuple[int, bool]:
    """Kills the processes that `find` returns until none remain. Returns how many there were, and whether
    all are gone.
    """
    killed: set[ProcessIdentity] = set()
    until = time.monotonic() + patience
    while alive := [process for process in find() if process.alive]:
        for process in alive:
            killed.add(process)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        if time.monotonic() >= until:
            return len(killed), False
        time.sleep(_RETRY_INTERVAL)
    return len(killed), True


def _read_arguments(pid: int, name: str) -> list[bytes]:
    try:
        return (PROC / str(pid) / name).read_bytes().split(b"\0")
    except OSError:
        return []
