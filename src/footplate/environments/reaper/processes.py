"""Identifies processes by pid and start time, which together never repeat, and finds and kills those that carry a lease
id.

Imports little, because the death watch is a separate process beside every worker.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VARIABLE: Final = "FOOTPLATE_LEASE_ID"
"""Set for commands that only their guardian holds together, without a sandbox or a container."""
PROC: Final = Path("/proc")
_DEAD: Final = frozenset({"Z", "X"})
_ROUND: Final = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    started: int
    """In clock ticks since the machine booted."""

    @property
    def alive(self) -> bool:
        return started(self.pid) == self.started


NOBODY: Final = Process(0, 0)


def itself() -> Process:
    return Process(os.getpid(), started(os.getpid()) or 0)


def process(pid: int) -> Process:
    return Process(pid, started(pid) or 0)


def started(pid: int) -> int | None:
    """Returns the start time. None if the process does not exist, or is a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return None
    return None if fields[0].decode() in _DEAD else int(fields[19])


def marked(lease_id: str) -> list[Process]:
    """Returns the processes that have the lease id as an argument of their command line, or in their environment. Forks
    of a guardian have the guardian's command line.
    """
    word = lease_id.encode()
    variable = VARIABLE.encode() + b"=" + word
    found = (process(pid) for pid in pids() if word in _words(pid, "cmdline") or variable in _words(pid, "environ"))
    return [one for one in found if one.started]


def pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir(PROC) if entry.name.isdigit() and int(entry.name) != os.getpid()]


def end(find: Callable[[], Iterable[Process]], *, patience: float) -> tuple[int, bool]:
    """Kills the processes that `find` returns until none remain. Returns how many there were, and whether
    all are gone.
    """
    killed: set[Process] = set()
    until = time.monotonic() + patience
    while alive := [process for process in find() if process.alive]:
        for process in alive:
            killed.add(process)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        if time.monotonic() >= until:
            return len(killed), False
        time.sleep(_ROUND)
    return len(killed), True


def _words(pid: int, name: str) -> list[bytes]:
    try:
        return (PROC / str(pid) / name).read_bytes().split(b"\0")
    except OSError:
        return []
