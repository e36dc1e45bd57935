"""Starts one bubblewrap sandbox for a turn through the guardian, and connects the worker to its init process by a
socket.
"""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, Self

from footplate.domain.errors import Unavailable
from footplate.environments.commands import content_of
from footplate.environments.enclosed import Enclosure, Ended
from footplate.environments.guardian import Guardian
from footplate.environments.output import Output
from footplate.environments.sandbox import seccomp, view
from footplate.environments.sandbox.cgroups import Cgroup
from footplate.environments.sandbox.limits import BEFORE

_START_LIMIT: Final = 10.0
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


class Sandbox(Enclosure):
    """A running sandbox. Create it with `start`."""

    noun = "sandbox"

    @classmethod
    async def start(
        cls,
        guardian: Guardian,
        argv: Sequence[str],
        data: Mapping[int, bytes],
        cgroup: Cgroup | None,
        limits: Mapping[str, int],
    ) -> Self:
        """`limits` apply to each process, by their names in the `resource` module."""
        argv = (*argv, *(f"{name}={number}" for name, number in limits.items()))
        worker_end, sandbox_end = socket.socketpair()
        worker_end.setblocking(False)
        worker_end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        error_output = Output(4096)
        sandbox = cls(worker_end)
        data_fds = {number: content_of(content) for number, content in data.items()}
        try:
            _, stderr = (reader.writer for reader in error_output.readers)
            fds = {0: sandbox_end.fileno(), 1: stderr, 2: stderr, **data_fds}
            sandbox.kept_by(await guardian.spawn(argv, cwd="/", env={}, fds=fds, limits=BEFORE))
            sandbox_end.close()
            error_output.release()
            await sandbox._wait_until_ready(error_output)
            if cgroup is not None:
                await asyncio.to_thread(cgroup.attach, sandbox.peer)
        except BaseException:
            await sandbox.end_all()
            raise
        finally:
            sandbox_end.close()
            for fd in data_fds.values():
                os.close(fd)
            error_output.close()
        return sandbox

    async def _wait_until_ready(self, error_output: Output) -> None:
        try:
            async with asyncio.timeout(_START_LIMIT):
                await asyncio.shield(self.ready)
        except TimeoutError:
            raise Unavailable("The sandbox did not start in time.") from None
        except Ended:
            text = error_output.take()[1].value().decode(errors="replace").strip() or "bubblewrap exited silently"
            raise Unavailable(f"The sandbox did not start: {text}", help_text="Run `footplate doctor`.") from None


def command(program: str, seen: view.View, plan: view.Plan) -> Sequence[str]:
    view.mount(seen, plan)
    for filter_program in seccomp.programs():
        plan.add("--add-seccomp-fd", plan.descriptor(filter_program))
    network = ("--share-net",) if seen.shares_network else ()
    first = (view.python(), "-I", "-S", "-B", "-c", _PROGRAM, *seen.ports)
    return (program, *_FLAGS, *network, *plan.arguments, "--chdir", seen.root, "--", *first)
