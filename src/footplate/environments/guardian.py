"""The worker's side of the guardian: starts it, renews its lease, and has it start and stop commands.

All is done on the event loop, without a thread. A guardian that dies, for whatever reason, fails everybody who waits
for one of its commands with `Unavailable`.
"""

import array
import asyncio
import contextlib
import itertools
import marshal
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import structlog

from footplate.domain.errors import Unavailable

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


class Spawned:
    """A command that the guardian started."""

    def __init__(self, guardian: "Guardian", number: int) -> None:
        loop = asyncio.get_running_loop()
        self._guardian = guardian
        self._number = number
        self._started: asyncio.Future[int] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        """The exit code as a shell tells it: 128 and the number for a death by signal. Never cancel it."""

    @property
    def pid(self) -> int:
        return self._started.result()

    async def wait(self) -> int:
        return await asyncio.shield(self.exited)

    async def stop(self, *, grace: float) -> None:
        """End it, its group, its session and its descendants: SIGTERM, SIGKILL after the grace, none left alive."""
        self._guardian.send({"do": "stop", "id": self._number, "grace": grace})
        await asyncio.shield(self._stopped)

    async def kill(self) -> None:
        """End it at once, if that has not happened already with its guardian."""
        with contextlib.suppress(Unavailable):
            await self.stop(grace=0)


class Guardian:
    """Made by `start`; whoever made it calls `close`."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.mode = ""
        """How it owns the tree: `namespace` or `descendants`."""
        self._loop = loop
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._connection = connection
        self._open = True
        self._inbox = bytearray()
        self._outbox: deque[tuple[memoryview, list[int]]] = deque()
        self._commands: dict[int, Spawned] = {}
        self._numbers = itertools.count(1)
        self._ready: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(connection, self._receive)
        loop.add_reader(self._pidfd, self._reap)

    @classmethod
    async def start(cls, deadline: float, *, namespaces: bool = True) -> Self:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        mode = "namespace" if namespaces else "descendants"
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec of a small program; waited for by pidfd
                [sys.executable, "-I", "-S", "-c", _PROGRAM, repr(deadline), mode],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        guardian = cls(process, ours)
        try:
            async with asyncio.timeout(_START_LIMIT):
                await guardian._ready
        except TimeoutError:
            await guardian.close()
            raise Unavailable("The guardian did not start in time.") from None
        except BaseException:
            await guardian.close()
            raise
        return guardian

    @property
    def pid(self) -> int:
        return self._process.pid

    def renew(self, deadline: float) -> None:
        if self._open:
            self.send({"do": "renew", "deadline": deadline})

    async def spawn(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], fds: Mapping[int, int]) -> Spawned:
        """`fds` maps a number in the command to a descriptor of ours, which stays ours to close."""
        command = Spawned(self, next(self._numbers))
        message = {
            "do": "spawn",
            "id": command._number,  # noqa: SLF001 - two halves of one thing
            "argv": list(argv),
            "cwd": cwd,
            "env": dict(env),
            "fds": list(fds),
        }
        self._commands[command._number] = command  # noqa: SLF001
        self.send(message, list(fds.values()))
        try:
            await asyncio.shield(command._started)  # noqa: SLF001
        except asyncio.CancelledError:
            await command.kill()
            raise
        return command

    async def close(self) -> None:
        """Kill everything and see the guardian go. Safe to call again."""
        self._disconnect()
        try:
            async with asyncio.timeout(_CLOSE_LIMIT):
                await asyncio.shield(self._gone)
        except TimeoutError:
            log.error("guardian did not end", action="guardian.stuck", pid=self._process.pid)  # noqa: TRY400
            self._process.kill()
            await asyncio.shield(self._gone)

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Queue and send what the socket takes now; the rest follows by itself."""
        if not self._open:
            raise Unavailable("The guardian of this turn is gone.")
        frame = marshal.dumps(message)
        self._outbox.append((memoryview(len(frame).to_bytes(4, "big") + frame), [os.dup(fd) for fd in fds]))
        self._flush()

    def _flush(self) -> None:
        try:
            while self._outbox:
                data, fds = self._outbox[0]
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
                sent = self._connection.sendmsg([data], rights)
                _close_all(fds)
                if sent < len(data):
                    self._outbox[0] = (data[sent:], [])
                else:
                    self._outbox.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._connection, self._flush)
        except OSError:
            self._disconnect()
        else:
            self._loop.remove_writer(self._connection)

    def _receive(self) -> None:
        try:
            data = self._connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            log.warning("guardian gone", action="guardian.lost", pid=self._process.pid)
            self._disconnect()
            return
        self._inbox += data
        while len(self._inbox) >= 4 and len(self._inbox) >= 4 + (size := int.from_bytes(self._inbox[:4], "big")):  # noqa: PLR2004 - the length's own length
            message = marshal.loads(self._inbox[4 : 4 + size])  # noqa: S302 - from a process of ours, never from a command
            del self._inbox[: 4 + size]
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        if mode := message.get("ready"):
            self.mode = mode
            _settle(self._ready, None)
        elif number := message.get("started"):
            _settle(self._commands[number]._started, message["pid"])  # noqa: SLF001
        elif number := message.get("exited"):
            code = message["code"]
            _settle(self._commands[number].exited, code if code >= 0 else 128 - code)
        elif number := message.get("stopped"):
            _settle(self._commands[number]._stopped, None)  # noqa: SLF001

    def _disconnect(self) -> None:
        """Closing our end is what tells a living guardian to kill everything and go."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._connection.close()
        for _, fds in self._outbox:
            _close_all(fds)
        self._outbox.clear()
        _fail(self._ready)
        for command in self._commands.values():
            for future in (command._started, command.exited, command._stopped):  # noqa: SLF001
                _fail(future)

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self._disconnect()
        _settle(self._gone, None)


def _settle(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_exception(Unavailable("The guardian of this turn is gone."))
        future.exception()  # nobody has to be waiting


def _close_all(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())
