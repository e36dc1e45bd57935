"""The worker's connection to a process that starts commands for it: a guardian, or an init process.

A guardian process starts the commands of an unsandboxed turn, and the init process those of a sandbox or container.
Requests use Python's `marshal` format and carry the file descriptors for the command. Replies consist of three
fields of fixed size and are not trusted, because they may come from inside a sandbox. All I/O happens on the event
loop, without threads.
"""

import array
import asyncio
import contextlib
import itertools
import marshal
import os
import socket
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from footplate.domain.errors import FootplateError, Unavailable
from footplate.telemetry import metrics

_REPLY: Final = struct.Struct(">cIi")
"""A reply: the kind of event, the number of the command, and a value such as a pid or an exit code."""
_CREDENTIALS: Final = struct.Struct("3i")


class SpawnedCommand:
    """A command that was started through a spawner."""

    def __init__(self, spawner: "Spawner", number: int) -> None:
        loop = asyncio.get_running_loop()
        self._spawner = spawner
        self._number = number
        self._started: asyncio.Future[int] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        """The exit code in shell convention: 128 plus the signal number after death by a signal. Never cancel this
        future.
        """

    @property
    def pid(self) -> int:
        return self._started.result()

    async def wait(self) -> int:
        return await asyncio.shield(self.exited)

    async def stop(self, *, grace: float) -> None:
        """Ends the command, its group, its session and its descendants: SIGTERM, then SIGKILL after the
        grace period.
        """
        self._spawner.send({"do": "stop", "id": self._number, "grace": grace})
        metrics.GUARDIAN_KILLS.labels("command").inc()
        timeout = self._spawner.stop_timeout
        try:
            async with asyncio.timeout(None if timeout is None else grace + timeout):
                await asyncio.shield(self._stopped)
        except TimeoutError:
            await self._spawner.end_all()
            await asyncio.shield(self._stopped)

    async def kill(self) -> None:
        """Kills the command immediately. Does nothing if it already ended with its guardian."""
        with contextlib.suppress(Unavailable):
            await self.stop(grace=0)


class Spawner:
    """A connection to a spawning process. The code that started that process also ends it."""

    stop_timeout: float | None = None
    """How many seconds beyond its grace period a stop may take before `end_all` is called. None: no limit."""

    def __init__(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.ready_value = 0
        """The value that the other end sent when it was ready."""
        self.peer_pid = 0
        """The pid of the other end as the kernel reports it. Only set if the connection requests credentials."""
        self.ready: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._connection = connection
        self._open = True
        self._inbox = bytearray()
        self._outbox: deque[tuple[memoryview, list[int]]] = deque()
        self._commands: dict[int, SpawnedCommand] = {}
        self._numbers = itertools.count(1)
        loop.add_reader(connection, self._receive)

    @property
    def connected(self) -> bool:
        return self._open

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        fds: Mapping[int, int],
        limits: Mapping[str, int] | None = None,
        terminal: bool = False,
    ) -> SpawnedCommand:
        """Starts a command. `fds` maps a descriptor number in the command to one of the caller, who still has to close
        it. `limits` uses the names of the `resource` module. `terminal`: descriptor 0 becomes its controlling terminal.
        """
        message: dict[str, Any] = {"argv": list(argv), "cwd": cwd, "env": dict(env)}
        if terminal:
            message["terminal"] = True
        return await self.request({**message, "limits": dict(limits)} if limits else message, fds)

    async def request(self, message: dict[str, Any], fds: Mapping[int, int]) -> SpawnedCommand:
        command = SpawnedCommand(self, next(self._numbers))
        self._commands[command._number] = command  # noqa: SLF001 - Spawned and Spawner are one unit
        try:
            self.send({**message, "do": "spawn", "id": command._number, "fds": list(fds)}, list(fds.values()))  # noqa: SLF001
            await asyncio.shield(command._started)  # noqa: SLF001
        except asyncio.CancelledError:
            await command.kill()
            raise
        return command

    async def end_other_commands(self, spared: Sequence[SpawnedCommand]) -> None:
        """Kills every process except the given commands. Processes that these commands started are killed too."""
        request = SpawnedCommand(self, next(self._numbers))
        self._commands[request._number] = request  # noqa: SLF001 - as above
        try:
            spare = [command._number for command in spared]  # noqa: SLF001
            self.send({"do": "calm", "id": request._number, "spare": spare})  # noqa: SLF001
            await asyncio.shield(request._stopped)  # noqa: SLF001
        finally:
            del self._commands[request._number]  # noqa: SLF001

    async def end_all(self) -> None:
        """Ends the other end with everything it started, because it does not respond to a request."""
        self.disconnect()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Queues a message and sends as much as the socket accepts now. The rest is sent when the socket is
        writable.
        """
        if not self._open:
            raise self.connection_error()
        frame = marshal.dumps(message)
        self._outbox.append((memoryview(len(frame).to_bytes(4, "big") + frame), [os.dup(fd) for fd in fds]))
        self._flush()

    def connection_error(self) -> FootplateError:
        """Returns the error that waiting callers receive when the connection is lost."""
        return Unavailable("The guardian process of this turn has exited.")

    def handle_disconnect(self) -> None:
        """Handles a connection that broke or was closed by the other end."""
        self.disconnect()

    def disconnect(self) -> None:
        """Closes the connection. A living process at the other end then kills everything and exits."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._connection.close()
        for _, fds in self._outbox:
            _close_all(fds)
        self._outbox.clear()
        self.fail_all(self.connection_error())

    def fail_all(self, error: FootplateError) -> None:
        _fail(self.ready, error)
        for command in self._commands.values():
            for future in (command._started, command.exited, command._stopped):  # noqa: SLF001
                _fail(future, error)

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
            self.handle_disconnect()
        else:
            self._loop.remove_writer(self._connection)

    def _receive(self) -> None:
        try:
            data = self._connection.recv(1 << 16) if self.ready.done() else self._receive_first()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.handle_disconnect()
            return
        self._inbox += data
        complete_size = len(self._inbox) // _REPLY.size * _REPLY.size
        replies, self._inbox = bytes(self._inbox[:complete_size]), self._inbox[complete_size:]
        for kind, number, value in _REPLY.iter_unpack(replies):
            self._handle_reply(kind, number, value)

    def _receive_first(self) -> bytes:
        """Reads the first reply with the sender's credentials. No command runs yet, so no untrusted process can attach
        descriptors. Later reads use `recv`, with which the kernel drops attached descriptors.
        """
        data, ancillary, _, _ = self._connection.recvmsg(1 << 16, socket.CMSG_SPACE(_CREDENTIALS.size))
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(content) == _CREDENTIALS.size:
                self.peer_pid = _CREDENTIALS.unpack(content)[0]
        return data

    def _handle_reply(self, kind: bytes, number: int, value: int) -> None:
        command = self._commands.get(number)
        if kind == b"R":
            self.ready_value = value
            _settle(self.ready, None)
        elif command is None:
            return
        elif kind == b"S":
            _settle(command._started, value)  # noqa: SLF001
        elif kind == b"E":
            _settle(command.exited, value if value >= 0 else 128 - value)
        elif kind == b"T":
            _settle(command._stopped, None)  # noqa: SLF001

    def finish_all(self, code: int) -> None:
        """Marks all commands as ended with this exit code."""
        for command in self._commands.values():
            _fail(command._started, self.connection_error())  # noqa: SLF001
            _settle(command.exited, code)
            _settle(command._stopped, None)  # noqa: SLF001


def _settle(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: FootplateError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # marks the exception as retrieved, because no caller may be waiting


def _close_all(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())
