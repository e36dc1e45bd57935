"""Starts the bubblewrap sandbox of one turn, and connects the worker to the init process inside it by a socket.

The turn's guardian process starts bubblewrap. The guardian enforces the worker's lease, so the sandbox ends when the
lease ends.
"""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, Self

from footplate.domain.errors import Unavailable
from footplate.environments.isolation import filesystem_view
from footplate.environments.isolation.cgroups import Cgroup
from footplate.environments.isolation.isolated_environment import Enclosure, EnclosureEnded
from footplate.environments.isolation.resource_limits import PRESET_LIMITS
from footplate.environments.processes.command_runner import open_stdin
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import CapturedOutput
from footplate.environments.sandbox import seccomp

_START_TIMEOUT: Final = 10.0
_PROGRAM: Final = f"""
import sys
sys.path.append({filesystem_view.CODE_MOUNT!r})
import init_process
init_process.main()
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
    "--uid", str(filesystem_view.INSIDE_UID),
    "--gid", str(filesystem_view.INSIDE_UID),
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
        error_output = CapturedOutput(4096)
        sandbox = cls(worker_end)
        data_fds = {number: open_stdin(content) for number, content in data.items()}
        try:
            _, stderr = (reader.writer for reader in error_output.readers)
            fds = {0: sandbox_end.fileno(), 1: stderr, 2: stderr, **data_fds}
            sandbox.set_anchor(await guardian.spawn(argv, cwd="/", env={}, fds=fds, limits=PRESET_LIMITS))
            sandbox_end.close()
            error_output.close_writers()
            await sandbox._wait_until_ready(error_output)
            if cgroup is not None:
                await asyncio.to_thread(cgroup.attach, sandbox.peer_pid)
        except BaseException:
            await sandbox.end_all()
            raise
        finally:
            sandbox_end.close()
            for fd in data_fds.values():
                os.close(fd)
            error_output.close()
        return sandbox

    async def _wait_until_ready(self, error_output: CapturedOutput) -> None:
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                await asyncio.shield(self.ready)
        except TimeoutError:
            raise Unavailable("The sandbox did not start in time.") from None
        except EnclosureEnded:
            text = (
                error_output.collect()[1].excerpt().decode(errors="replace").strip()
                or "bubblewrap exited without a message"
            )
            raise Unavailable(f"The sandbox did not start: {text}", help_text="Run `footplate doctor`.") from None


def build_command(
    program: str, seen: filesystem_view.FilesystemView, plan: filesystem_view.BubblewrapPlan
) -> Sequence[str]:
    filesystem_view.add_mounts(seen, plan)
    for filter_program in seccomp.build_filters():
        plan.add_arguments("--add-seccomp-fd", plan.add_data(filter_program))
    network = ("--share-net",) if seen.shares_network else ()
    init_command = (filesystem_view.python_path(), "-I", "-S", "-B", "-c", _PROGRAM, *seen.ports)
    return (program, *_FLAGS, *network, *plan.arguments, "--chdir", seen.root, "--", *init_command)
