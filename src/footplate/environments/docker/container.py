"""Starts one container for a turn: the engine creates it, the guardian owns it, and the worker talks to it by a socket.

The parent of its processes is the engine, not the guardian, so the end of the guardian alone would end nothing. The
lifeline does: a connection between a child of the guardian (the anchor process) and the container's init process. When
the anchor process dies, because the worker, the lease or the guardian ended, the init process exits, the kernel kills
all other processes, and the engine removes the container. No process of Footplate outside has to be alive for that.
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
from footplate.environments.docker import meeting
from footplate.environments.docker.engine import connected
from footplate.environments.docker.meeting import Meeting
from footplate.environments.enclosed import Enclosure
from footplate.environments.guarded import PATH
from footplate.environments.guardian import Guardian

log = structlog.get_logger(__name__)

_START_LIMIT: Final = 30.0
_END_LIMIT: Final = 2.0
_SAID_AT_MOST: Final = 2000
_KEEPER: Final = (shutil.which("sleep", path=PATH) or "/bin/sleep", "infinity")
"""An absolute path: after it switched users, the guardian can no longer import the modules that a PATH search needs."""


class Launch(Protocol):
    """A way to start the init process in a container."""

    def launched(self, docker: aiodocker.Docker, rendezvous: Meeting) -> contextlib.AbstractAsyncContextManager[Stream]:
        """Starts the init process and yields its output. If the context is left by an exception, nothing
        stays behind.
        """

    async def end(self, docker: aiodocker.Docker) -> None:
        """Ends the container from outside, if it does not end by itself."""


class Container(Enclosure):
    """A running container. Create it with `start`."""

    noun = "container"

    def __init__(self, connection: socket.socket, host: str, launch: Launch) -> None:
        super().__init__(connection)
        self.process = 0
        """The host pid of the process whose end ends the whole container; 0 if it is not visible from here."""
        self._host = host
        self._launch = launch
        self._pidfd = -1

    @classmethod
    async def start(cls, guardian: Guardian, host: str, launch: Launch, rendezvous: Meeting) -> Self:
        container: Self | None = None
        async with connected(host) as docker:
            try:
                async with asyncio.timeout(_START_LIMIT):
                    with rendezvous:
                        async with launch.launched(docker, rendezvous) as stream, _all_of(stream) as output:
                            with await _unless_over(rendezvous.accept(), output) as lifeline:
                                container = cls(await _unless_over(rendezvous.accept(), output), host, launch)
                                await container._hold(guardian, lifeline)
                            await asyncio.shield(container.ready)
            except BaseException as error:
                if container is not None:
                    container._abandon()
                if isinstance(error, TimeoutError):
                    text = "The container did not start in time."
                    raise Unavailable(text, help_text="Run `footplate doctor`.") from None
                raise
        return container

    async def gone(self) -> None:
        """Waits until all processes are gone. If that takes too long, asks the engine to end the container."""
        self.disconnect()
        if self._pidfd < 0:
            await self._ask_to_end()
            return
        exited = asyncio.Event()
        self._loop.add_reader(self._pidfd, exited.set)
        try:
            async with asyncio.timeout(_END_LIMIT):
                await exited.wait()
        except TimeoutError:
            log.error("container did not exit in time", action="container.stuck", pid=self.process)  # noqa: TRY400
            await self._ask_to_end()
        finally:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    async def _hold(self, guardian: Guardian, lifeline: socket.socket) -> None:
        process = meeting.peer(lifeline)
        with contextlib.suppress(OSError):
            self._pidfd = os.pidfd_open(process)
            self.process = process
        self.kept_by(await guardian.spawn(_KEEPER, cwd="/", env={}, fds={0: lifeline.fileno()}))

    def _abandon(self) -> None:
        self.disconnect()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    async def _ask_to_end(self) -> None:
        """Asks the engine to end the container. If the engine does not respond, the turn still ends, and the sweep
        retries later.
        """
        try:
            async with connected(self._host) as docker:
                await self._launch.end(docker)
        except Unavailable as error:
            log.error("container not removed; the sweep will retry", action="container.left", reason=error.message)  # noqa: TRY400


async def _unless_over(accepting: Coroutine[None, None, socket.socket], said: "asyncio.Task[str]") -> socket.socket:
    """Waits for a connection. The init process prints only on failure, so its output is the error if it exits first."""
    accepted = asyncio.create_task(accepting)
    try:
        await asyncio.wait({accepted, said}, return_when=asyncio.FIRST_COMPLETED)
        if accepted.done():
            return accepted.result()
    finally:
        accepted.cancel()
    text = said.result().strip() or "it exited without a message"
    raise Unavailable(f"The container did not start: {text}", help_text="Run `footplate doctor`.")


@contextlib.asynccontextmanager
async def _all_of(printed: Stream) -> AsyncIterator["asyncio.Task[str]"]:
    async def read() -> str:
        text = b""
        while (message := await printed.read_out()) is not None:
            text = (text + message.data)[-_SAID_AT_MOST:]
        return text.decode(errors="replace")

    task = asyncio.create_task(read())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
