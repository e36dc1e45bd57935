"""Starts the container of one turn and connects the worker to the init process inside it.

The guardian is a process on the host. It kills the processes of its turn when the worker dies, or when the lease
expires: a deadline that the worker must renew. The processes in a container are children of Docker, so the guardian
cannot kill them directly. It starts an anchor process instead, which holds a socket connection (the lifeline) to the
init process. When the guardian kills the anchor process, the lifeline closes and the init process exits. The kernel
then kills all other processes in the container, and Docker removes the container.
"""

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Final, Protocol, Self

import aiodocker
import structlog
from aiodocker.stream import Stream

from footplate.domain.errors import Unavailable
from footplate.environments.base_environment import DEFAULT_PATH
from footplate.environments.docker import rendezvous_socket
from footplate.environments.docker.engine_api import connect_engine
from footplate.environments.docker.rendezvous_socket import RendezvousSocket
from footplate.environments.isolation.isolated_environment import Enclosure
from footplate.environments.processes.guardian_client import Guardian

log = structlog.get_logger(__name__)

_START_TIMEOUT: Final = 30.0
_END_TIMEOUT: Final = 2.0
_MAX_OUTPUT_BYTES: Final = 2000
_ANCHOR_COMMAND: Final = (shutil.which("sleep", path=DEFAULT_PATH) or "/bin/sleep", "infinity")
"""An absolute path: after it switched users, the guardian can no longer import the modules that a PATH search needs."""


class ContainerLaunch(Protocol):
    """A way to start the init process in a container."""

    def start_init(
        self, docker: aiodocker.Docker, rendezvous: RendezvousSocket
    ) -> contextlib.AbstractAsyncContextManager[Stream]:
        """Starts the init process and yields its output. If the context is left by an exception, nothing
        stays behind.
        """

    async def end_container(self, docker: aiodocker.Docker) -> None:
        """Ends the container from outside, if it does not end by itself."""


class Container(Enclosure):
    """A running container. Create it with `start`.

    The guardian kills the anchor process when the lease expires or the worker dies. From then on, the container ends
    without the help of any Footplate process outside it. In a named container only the turn's processes end.
    """

    noun = "container"

    def __init__(self, connection: socket.socket, host: str, launch: ContainerLaunch) -> None:
        super().__init__(connection)
        self.main_pid = 0
        """The host pid of the process whose end ends the whole container; 0 if it is not visible from here."""
        self._host = host
        self._launch = launch
        self._pidfd = -1

    @classmethod
    async def start(cls, guardian: Guardian, host: str, launch: ContainerLaunch, rendezvous: RendezvousSocket) -> Self:
        container: Self | None = None
        async with connect_engine(host) as docker:
            try:
                async with asyncio.timeout(_START_TIMEOUT):
                    with rendezvous:
                        async with launch.start_init(docker, rendezvous) as stream, _collect_output(stream) as output:
                            with await _accept_or_fail(rendezvous.accept(), output) as lifeline:
                                container = cls(await _accept_or_fail(rendezvous.accept(), output), host, launch)
                                await container._attach_lifeline(guardian, lifeline)
                            await asyncio.shield(container.ready)
            except BaseException as error:
                if container is not None:
                    container._release()
                if isinstance(error, TimeoutError):
                    text = "The container did not start in time."
                    raise Unavailable(text, help_text="Run `footplate doctor`.") from None
                raise
        return container

    async def wait_until_gone(self) -> None:
        """Waits until all processes are gone. If that takes too long, asks the engine to end the container."""
        self.disconnect()
        if self._pidfd < 0:
            await self._end_by_engine()
            return
        exited = asyncio.Event()
        self._loop.add_reader(self._pidfd, exited.set)
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                await exited.wait()
        except TimeoutError:
            log.error("container did not exit in time", action="container.stuck", pid=self.main_pid)  # noqa: TRY400
            await self._end_by_engine()
        finally:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    async def _attach_lifeline(self, guardian: Guardian, lifeline: socket.socket) -> None:
        process = rendezvous_socket.peer_pid(lifeline)
        with contextlib.suppress(OSError):
            self._pidfd = os.pidfd_open(process)
            self.main_pid = process
        self.set_anchor(await guardian.spawn(_ANCHOR_COMMAND, cwd="/", env={}, fds={0: lifeline.fileno()}))

    def _release(self) -> None:
        self.disconnect()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    async def _end_by_engine(self) -> None:
        """Asks the engine to end the container. If the engine does not respond, the turn still ends, and the sweep
        retries later.
        """
        try:
            async with connect_engine(self._host) as docker:
                await self._launch.end_container(docker)
        except Unavailable as error:
            log.error(  # noqa: TRY400
                "container could not be removed; the sweep will retry", action="container.left", reason=error.message
            )


async def _accept_or_fail(
    accepting: Coroutine[None, None, socket.socket], output: "asyncio.Task[str]"
) -> socket.socket:
    """Waits for a connection. The init process prints only on failure, so its output is the error if it exits first."""
    accepted = asyncio.create_task(accepting)
    try:
        await asyncio.wait({accepted, output}, return_when=asyncio.FIRST_COMPLETED)
        if accepted.done():
            return accepted.result()
    finally:
        accepted.cancel()
    text = output.result().strip() or "it exited without a message"
    raise Unavailable(f"The container did not start: {text}", help_text="Run `footplate doctor`.")


@contextlib.asynccontextmanager
async def _collect_output(stream: Stream) -> AsyncIterator["asyncio.Task[str]"]:
    async def read() -> str:
        text = b""
        while (message := await stream.read_out()) is not None:
            text = (text + message.data)[-_MAX_OUTPUT_BYTES:]
        return text.decode(errors="replace")

    task = asyncio.create_task(read())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
