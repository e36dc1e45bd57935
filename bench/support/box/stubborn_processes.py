"""Commands that resist being ended. Their processes are found by a unique number in their arguments."""

import asyncio
import random
import time
from pathlib import Path

_HIDING_COMMANDS = """
setsid sleep {n} & nohup sleep {n} >/dev/null 2>&1 &
(setsid bash -c '(sleep {n} &)' &)
(setsid bash -c 'trap "" TERM INT HUP; sleep {n} & wait' &)
trap '' TERM INT HUP; sleep {n}
"""


class StubbornProcesses:
    def __init__(self) -> None:
        self._number = random.randrange(10**8, 10**9)
        self.hiding_commands = _HIDING_COMMANDS.format(n=self._number)
        """Starts five processes with double forks, their own sessions and ignored signals."""
        self.signal_ignoring_command = (
            f"echo partial; trap '' TERM INT HUP; sleep {self._number} & wait; while :; do sleep 0.1; done"
        )
        """Prints, and ignores requests to end."""

    def list_alive(self) -> list[int]:
        """Returns every process that has the number in its arguments, shells included."""
        number = str(self._number).encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if number in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    async def wait_started(self, count: int, limit: float = 30) -> None:
        end = time.monotonic() + limit
        while len(self.list_alive()) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(self.list_alive())} of {count} processes were started")
            await asyncio.sleep(0.02)

    async def wait_gone(self, limit: float = 30) -> float:
        """Waits until none is alive, and returns the time of that."""
        end = time.monotonic() + limit
        while self.list_alive():
            if time.monotonic() > end:
                raise TimeoutError(f"alive after {limit} s: {self.list_alive()}")
            await asyncio.sleep(0.01)
        return time.monotonic()
