"""Runs a shell or a command on a terminal (a pty), inside a sandbox or container.

The worker creates the pty, and holds the end at which a person's keyboard and screen would be. The program gets the
other end as its controlling terminal. No process inside the enclosure is between the two, and the exit code comes from
the init process, so nothing that a program prints can be mistaken for it.
"""

import asyncio
import errno
import fcntl
import os
import struct
import termios
import time
from collections.abc import Mapping
from typing import Final, Self

from footplate.domain.ports.harness import CommandResult
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.environments.processes.output_buffer import OutputBuffer
from footplate.environments.processes.output_capture import write_all
from footplate.environments.processes.persistent_shell import ShellDialect
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner

_CHUNK_BYTES: Final = 1 << 16
_READ_AHEAD_BYTES: Final = 1 << 18
TERMINAL_VARIABLES: Final[Mapping[str, str]] = {
    "TERM": "xterm-256color",
    "PS1": r"\w\$ ",
    "HISTFILE": "",
    "INPUTRC": "/dev/null",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
}
"""At a terminal, some programs start others that a file in the tree names, such as the pager of a git configuration. No
rule has decided on those, so pagers are off, and the shell reads no file of its own.
"""


def terminal_argv(dialect: ShellDialect, command: str | None) -> tuple[str, ...]:
    program = tuple(argument for argument in dialect.argv if argument != "-s")
    return (*program, "-i") if command is None else (*program, "-c", command)


class PtyProcess(TerminalProcess):
    """A running program. Create it with `start`; the creator calls `close`."""

    def __init__(self, screen: int, output_limit: int) -> None:
        self._screen = screen
        """The worker's end of the pty."""
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._readable = asyncio.Event()
        self._ended = False
        self._output = OutputBuffer(output_limit)
        self._carry = b""
        self._started_at = time.monotonic()
        self._write_lock = asyncio.Lock()
        self._command: SpawnedCommand

    @classmethod
    async def start(
        cls,
        spawner: Spawner,
        command: str | None,
        *,
        dialect: ShellDialect,
        cwd: str,
        env: Mapping[str, str],
        size: TerminalSize,
        output_limit: int,
    ) -> Self:
        screen, program_end = os.openpty()
        os.set_blocking(screen, False)
        terminal = cls(screen, output_limit)
        try:
            terminal.resize(size)
            fds = dict.fromkeys((0, 1, 2), program_end)
            terminal._command = await spawner.spawn(
                terminal_argv(dialect, command), cwd=cwd, env={**env, **TERMINAL_VARIABLES}, fds=fds, terminal=True
            )
        except BaseException:
            terminal.close()
            raise
        finally:
            os.close(program_end)
        terminal._loop.add_reader(screen, terminal._receive)
        return terminal

    @property
    def is_closed(self) -> bool:
        return self._screen < 0

    async def read(self) -> bytes:
        while not self._buffer and not self._ended:
            self._readable.clear()
            await self._readable.wait()
        data = bytes(self._buffer[:_CHUNK_BYTES])
        del self._buffer[:_CHUNK_BYTES]
        if not self._ended and len(self._buffer) < _READ_AHEAD_BYTES:
            self._loop.add_reader(self._screen, self._receive)
        return data

    async def write(self, data: bytes) -> None:
        async with self._write_lock:
            if self._screen < 0:
                return
            try:
                await write_all(self._screen, data)
            except OSError as error:
                if error.errno not in {errno.EIO, errno.EBADF}:  # the program has ended
                    raise

    def resize(self, size: TerminalSize) -> None:
        if self._screen >= 0:
            fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("4H", size.rows, size.columns, 0, 0))

    async def wait(self) -> int:
        return await self._command.wait()

    async def kill(self) -> None:
        await self._command.kill()

    def collect_result(self, exit_code: int | None, *, timed_out: bool = False) -> CommandResult:
        output = self._output
        return CommandResult(
            exit_code=exit_code,
            stdout=output.excerpt(),
            stderr=b"",
            duration=time.monotonic() - self._started_at,
            timed_out=timed_out,
            truncated=output.truncated,
            full_outputs={"stdout": output} if output.spooled_size else {},
        )

    def close(self) -> None:
        """Closes the worker's end. Safe to call again."""
        self._end()
        if self._screen >= 0:
            os.close(self._screen)
            self._screen = -1

    def _receive(self) -> None:
        try:
            data = os.read(self._screen, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:  # no process has the other end open any more
            data = b""
        if not data:
            self._end()
            return
        self._record(data)
        self._buffer += data
        if len(self._buffer) >= _READ_AHEAD_BYTES:  # the program then blocks when it prints
            self._loop.remove_reader(self._screen)
        self._readable.set()

    def _record(self, data: bytes) -> None:
        """Adds output to the result of the command, with the line ends that the program printed."""
        data = self._carry + data
        self._carry = b"\r" if data.endswith(b"\r") else b""
        self._output.add(data.removesuffix(b"\r").replace(b"\r\n", b"\n"))

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._output.add(self._carry)
            self._loop.remove_reader(self._screen)
            self._readable.set()
