"""The worker's client for the guardian process of a turn: starts the process, renews its lease and stops it. The
guardian runs the turn's commands, and kills them when the lease ends.

If the guardian process dies, every caller that waits for one of its commands receives `Unavailable`.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import structlog

from footplate.domain.errors import Unavailable
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner
from footplate.telemetry import metrics

__all__ = ["Guardian", "SpawnedCommand"]

log = structlog.get_logger(__name__)

# Imported rather than run by path: Python caches the bytecode of an imported module, but not of a main program.
_PROGRAM: Final = f"""
import sys
sys.path.append({str(Path(__file__).parents[1] / "programs")!r})
import guardian_main
guardian_main.main()
"""
_CLOSE_TIMEOUT: Final = 5.0
_START_TIMEOUT: Final = 10.0


class Guardian(Spawner):
    """A running guardian. Create it with `start`; the creator calls `close`."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        super().__init__(connection)
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._exited: asyncio.Future[None] = self._loop.create_future()
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
        """Starts a guardian and waits until it is ready.

        `lease_id` is on its command line, so that the reaper can find it and its forks.

        `user` is the uid and gid that it switches to before it starts anything. Only root can switch to another user.

        `staged` is a directory, followed by the directories that are mounted below it by their index. Only root can do
        that.
        """
        worker_end, guardian_end = socket.socketpair()
        worker_end.setblocking(False)
        mode = "namespace" if namespaces else "descendants"
        uid, gid = user or (os.geteuid(), os.getegid())
        with guardian_end:
            process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec of a small program; waited for by pidfd
                [
                    *(sys.executable, "-I", "-S", "-c", _PROGRAM),
                    *(lease_id, repr(deadline), mode, str(uid), str(gid), *staged),
                ],
                stdin=guardian_end.fileno(),
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        guardian = cls(process, worker_end)
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                await guardian.ready
        except TimeoutError:
            await guardian.close()
            raise Unavailable("The guardian process did not start in time.") from None
        except BaseException:
            await guardian.close()
            raise
        return guardian

    @property
    def mode(self) -> str:
        """How the guardian owns its processes: by a pid namespace, or by descent."""
        return "namespace" if self.ready_value else "descendants"

    @property
    def pid(self) -> int:
        return self._process.pid

    def renew(self, deadline: float) -> None:
        if self.connected:
            self.send({"do": "renew", "deadline": deadline})

    async def close(self) -> None:
        """Kills all processes and waits until the guardian has exited. Safe to call again."""
        self.disconnect()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await asyncio.shield(self._exited)
        except TimeoutError:
            log.error("guardian did not exit in time", action="guardian.stuck", pid=self._process.pid)  # noqa: TRY400
            metrics.GUARDIAN_KILLS.labels("stuck").inc()
            self._process.kill()
            await asyncio.shield(self._exited)

    def handle_disconnect(self) -> None:
        log.warning("guardian exited unexpectedly", action="guardian.lost", pid=self._process.pid)
        metrics.GUARDIAN_KILLS.labels("lease").inc()
        self.disconnect()

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self.disconnect()
        _settle(self._exited)


def _settle(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_result(None)
