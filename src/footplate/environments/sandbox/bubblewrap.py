"""One bubblewrap around all that a turn runs: started through the guardian, spoken to through a socket of its own.

    worker ── guardian (lease) ── bwrap ── process 1 (`inside_main`) ── shell, programs, file access
       └───────────── socket ────────────────┘

Whatever ends the guardian ends bubblewrap, and with it everything inside.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, Self

import structlog

from footplate.domain.errors import FootplateError, Unavailable
from footplate.environments.commands import content_of
from footplate.environments.guardian import Guardian
from footplate.environments.output import Output
from footplate.environments.sandbox import seccomp, view
from footplate.environments.sandbox.cgroups import Cgroup
from footplate.environments.sandbox.limits import BEFORE
from footplate.environments.spawner import Spawned, Spawner

log = structlog.get_logger(__name__)

_START_LIMIT: Final = 10.0
_KILLED: Final = 137
_PROGRAM: Final = f"""
import sys
sys.path.append({view.CODE!r})
import inside_main
inside_main.main()
"""
_FLAGS: Final = (
    "--unshare-user",
    "--unshare-all",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--cap-drop", "ALL",
    "--clearenv",
    "--uid", str(view.UID),
    "--gid", str(view.UID),
    "--hostname", "footplate",
)  # fmt: skip


class SandboxEnded(Unavailable):
    """It ended under a command that was just being started: all of it, by itself or because memory ran out."""


class Sandbox(Spawner):
    """Made by `start`. Its end is the guardian's business; `ended` tells that it has come."""

    stop_patience = 3.0

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.over = False
        self._bwrap: Spawned | None = None
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        guardian: Guardian,
        argv: Sequence[str],
        data: Mapping[int, bytes],
        cgroup: Cgroup | None,
        limits: Mapping[str, int],
    ) -> Self:
        """`limits`: of its processes, by the names of the `resource` module."""
        argv = (*argv, *(f"{name}={number}" for name, number in limits.items()))
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        complaints = Output(4096)
        sandbox = cls(ours)
        read_from = {number: content_of(content) for number, content in data.items()}
        try:
            _, stderr = (reader.writer for reader in complaints.readers)
            fds = {0: theirs.fileno(), 1: stderr, 2: stderr, **read_from}
            sandbox._bwrap = await guardian.spawn(argv, cwd="/", env={}, fds=fds, limits=BEFORE)
            sandbox._bwrap.exited.add_done_callback(sandbox._bwrap_ended)
            theirs.close()
            complaints.release()
            await sandbox._wait_until_ready(complaints)
            if cgroup is not None:
                await asyncio.to_thread(cgroup.attach, sandbox.peer)
        except BaseException:
            await sandbox.end_all()
            raise
        finally:
            theirs.close()
            for fd in read_from.values():
                os.close(fd)
            complaints.close()
        return sandbox

    async def end_all(self) -> None:
        """From outside, whatever those inside do."""
        if self._bwrap is not None:
            with contextlib.suppress(Unavailable):
                await self._bwrap.kill()
        self.disconnect()

    def loss(self) -> FootplateError:
        return SandboxEnded("The sandbox ended.", help_text="The next command gets a fresh one.")

    def hung_up(self) -> None:
        """How it ended, the guardian will say: by itself, or with the guardian. One that lives on is ended."""
        if self._ending is None and self._bwrap is not None:
            self._loop.remove_reader(self._connection)
            self._ending = asyncio.create_task(self._bwrap.kill())

    async def _wait_until_ready(self, complaints: Output) -> None:
        try:
            async with asyncio.timeout(_START_LIMIT):
                await asyncio.shield(self.ready)
        except TimeoutError:
            raise Unavailable("The sandbox did not start in time.") from None
        except SandboxEnded:
            text = complaints.take()[1].value().decode(errors="replace").strip() or "bubblewrap ended without a word"
            raise Unavailable(f"The sandbox did not start: {text}", help_text="Run `footplate doctor`.") from None

    def _bwrap_ended(self, exited: "asyncio.Future[int]") -> None:
        """The guardian's loss is the turn's; its own end is a result: whatever ran was killed."""
        self.over = True
        error = exited.exception()
        if isinstance(error, FootplateError):
            self.fail_all(error)
        else:
            log.warning("sandbox ended", action="sandbox.ended", code=exited.result())
            self.settle_all(_KILLED)
        self.disconnect()


def command(program: str, seen: view.View, plan: view.Plan) -> Sequence[str]:
    view.mount(seen, plan)
    for filter_program in seccomp.programs():
        plan.add("--add-seccomp-fd", plan.descriptor(filter_program))
    network = ("--share-net",) if seen.network else ()
    first = (view.python(), "-I", "-S", "-B", "-c", _PROGRAM)
    return (program, *_FLAGS, *network, *plan.arguments, "--chdir", seen.root, "--", *first)
