"""The turn's guardian as the worker sees it: started, its lease renewed, closed.

A guardian that dies, for whatever reason, fails everybody who waits for one of its commands with `Unavailable`.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import structlog

from footplate.domain.errors import Unavailable
from footplate.environments.spawner import Spawned, Spawner
from footplate.telemetry import metrics

__all__ = ["Guardian", "Spawned", "clock"]

log = structlog.get_logger(__name__)

# Imported rather than run by path: then the compiled form is cached, which a main program's is not.
_PROGRAM: Final = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
import guardian_main
guardian_main.main()
"""
_CLOSE_LIMIT: Final = 5.0
_START_LIMIT: Final = 10.0


def clock() -> float:
    """The clock of leases: it goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Guardian(Spawner):
    """Made by `start`; whoever made it calls `close`."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        super().__init__(connection)
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._reap)

    @classmethod
    async def start(
        cls,
        deadline: float,
        *,
        namespaces: bool = True,
        user: tuple[int, int] | None = None,
        staged: Sequence[str] = (),
        lease_id: str = "-",
    ) -> Self:
        """`lease_id`: what the reaper knows it by, and whatever it forks.

        `user`: uid and gid that it becomes before it starts anything. Only root can become another.

        `staged`: a directory, and others that are to be seen in it by their numbers. Only root can do that.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        mode = "namespace" if namespaces else "descendants"
        uid, gid = user or (os.geteuid(), os.getegid())
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec of a small program; waited for by pidfd
                [
                    *(sys.executable, "-I", "-S", "-c", _PROGRAM),
                    *(lease_id, repr(deadline), mode, str(uid), str(gid), *staged),
                ],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        guardian = cls(process, ours)
        try:
            async with asyncio.timeout(_START_LIMIT):
                await guardian.ready
        except TimeoutError:
            await guardian.close()
            raise Unavailable("The guardian did not start in time.") from None
        except BaseException:
            await guardian.close()
            raise
        return guardian

    @property
    def mode(self) -> str:
        """How it owns the tree."""
        return "namespace" if self.value else "descendants"

    @property
    def pid(self) -> int:
        return self._process.pid

    def renew(self, deadline: float) -> None:
        if self.connected:
            self.send({"do": "renew", "deadline": deadline})

    async def close(self) -> None:
        """Kill everything and see the guardian go. Safe to call again."""
        self.disconnect()
        try:
            async with asyncio.timeout(_CLOSE_LIMIT):
                await asyncio.shield(self._gone)
        except TimeoutError:
            log.error("guardian did not end", action="guardian.stuck", pid=self._process.pid)  # noqa: TRY400
            metrics.GUARDIAN_KILLS.labels("stuck").inc()
            self._process.kill()
            await asyncio.shield(self._gone)

    def hung_up(self) -> None:
        log.warning("guardian gone", action="guardian.lost", pid=self._process.pid)
        metrics.GUARDIAN_KILLS.labels("lease").inc()
        self.disconnect()

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.disconnect()
        _settle(self._gone)


def _settle(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_result(None)
