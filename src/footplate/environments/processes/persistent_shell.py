r"""Runs the persistent shell of a turn, which keeps its directory, variables and functions between commands.

The shell is bash, or `sh` in a container without bash. It reads a script from standard input: for each command an
`eval` line, and a line that reports the exit status, the directory and the exported variables on a separate descriptor.
When the report arrives, all output of the command is already in the pipes. Output that a background job prints later is
returned with the next command.
"""

import asyncio
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from footplate import failpoints
from footplate.domain.ports.harness import CommandResult
from footplate.environments.processes.command_runner import build_result
from footplate.environments.processes.exported_variables import parse_exported_variables
from footplate.environments.processes.output_capture import CapturedOutput, PipeReader, write_all
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner

_MAX_STATUS_LENGTH: Final = len("255")
_MAX_REPORT_BYTES: Final = 8 << 20
"""Above what the kernel allows for the variables of a program."""
_REPORT_FIELDS: Final = 3
_ENTER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ShellDialect:
    argv: tuple[str, ...]
    status_fd: int
    """The descriptor on which the shell reports. A plain `sh` supports only single-digit numbers."""
    builtin: str
    """Calls a builtin even if a function has its name. In a plain `sh`, a syntax error in `eval` ends the shell without
    it."""


BASH: Final = ShellDialect(("bash", "--noprofile", "--norc", "-s"), 250, "builtin")
SH: Final = ShellDialect(("sh", "-s"), 9, "command")


@dataclass(frozen=True, slots=True)
class ShellReport:
    """The state of a shell after a command, as the shell itself reports it. Commands can falsify it."""

    directory: bytes
    """Empty if the directory no longer exists."""
    exports: bytes

    def parse_variables(self) -> Mapping[bytes, bytes]:
        return parse_exported_variables(self.exports)


class Shell:
    """A running shell. Create it with `start`. It runs one command at a time.

    The script contains no loop, because a `break` or `continue` in a command would affect that loop. A command cannot
    read the script, because its standard input is empty, and the status descriptor is closed for it.
    """

    def __init__(self, dialect: ShellDialect, output_limit: int) -> None:
        self._dialect = dialect
        self._output = CapturedOutput(output_limit)
        self._status = PipeReader(self._handle_report)
        self._inbox = bytearray()
        self._pending_status: asyncio.Future[int] | None = None
        self._script = -1
        self._process: SpawnedCommand
        self._ended = False
        self.report: ShellReport | None = None
        """After the last completed command."""
        self._kill_task: asyncio.Future[None] | None = None

    @classmethod
    async def start(
        cls, spawner: Spawner, *, cwd: str, env: Mapping[str, str], output_limit: int, dialect: ShellDialect = BASH
    ) -> Self:
        shell = cls(dialect, output_limit)
        stdin, shell._script = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(shell._script, False)
        stdout, stderr = (reader.writer for reader in shell._output.readers)
        try:
            fds = {0: stdin, 1: stdout, 2: stderr, dialect.status_fd: shell._status.writer}
            shell._process = await spawner.spawn(dialect.argv, cwd=cwd, env=env, fds=fds)
        except BaseException:
            shell.close()
            raise
        finally:
            os.close(stdin)
            shell._output.close_writers()
            shell._status.close_writer()
        return shell

    @property
    def pid(self) -> int:
        """The pid as processes in the same environment see it."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._ended and not self._process.exited.done()

    async def restore(self, directory: str | None, variables: Mapping[str, str]) -> None:
        """Exports variables and changes to a directory before the first command. If that is not possible, the shell
        stays where it is. The shell itself starts without the variables: `PATH` or `LD_PRELOAD` would choose what it
        runs before the gate has decided on a command.
        """
        builtin = self._dialect.builtin
        exports = [f"{builtin} export {name}={shlex.quote(value)} 2>/dev/null" for name, value in variables.items()]
        change = [] if directory is None else [f"cd -P -- {shlex.quote(directory)} 2>/dev/null"]
        reported = self._pending_status = asyncio.get_running_loop().create_future()
        try:
            await self._send_command("\n".join([*exports, *change]))
            await asyncio.wait(
                [reported, self._process.exited], timeout=_ENTER_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if not reported.done():
                await self.kill()

    async def run(self, command: str, *, time_limit: float, grace: float) -> CommandResult:
        started_at = time.monotonic()
        reported = self._pending_status = asyncio.get_running_loop().create_future()
        timed_out = False
        try:
            async with asyncio.timeout(time_limit):
                await self._send_command(command)
                await failpoints.hit("in_tool")
                await asyncio.wait([reported, self._process.exited], return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            timed_out = self._ended = True
            await self._process.stop(grace=grace)
        except BaseException:
            await self.kill()
            raise
        self._status.drain()
        exit_code = reported.result() if reported.done() else await self._process.wait()
        code = None if self._ended else exit_code
        return build_result(self._output, code, time.monotonic() - started_at, timed_out=timed_out)

    async def kill(self) -> None:
        """Kills the shell and its background jobs. A running command gets a result without an exit code."""
        self._ended = True
        await self._process.kill()

    def retire(self) -> CapturedOutput:
        """Discards further output after the shell has exited, because its background jobs may still print. Returns the
        output.
        """
        self._output.discard()
        self._status.close()
        self._close_script()
        return self._output

    def close(self) -> None:
        self._output.close()
        self._status.close()
        self._close_script()

    async def _send_command(self, command: str) -> None:
        builtin, descriptor = self._dialect.builtin, self._dialect.status_fd
        lines = (
            f"{builtin} eval {shlex.quote(command)} </dev/null {descriptor}>&-\n"
            # On a line of its own: after a syntax error in `eval`, bash takes no reserved word on the next line.
            f"{builtin} printf '%s\\0' \"$?\" >&{descriptor}\n"
            f"{{ {builtin} pwd -P || {builtin} :; {builtin} printf '\\0'; {builtin} export -p; "
            f"{builtin} printf '\\0'; }} >&{descriptor} 2>&-\n"
        )
        try:
            await write_all(self._script, lines.encode(errors="surrogateescape"))
        except BrokenPipeError:
            await self._process.wait()  # it exited by itself, so its exit code is the result

    def _handle_report(self, data: bytes) -> None:
        """Handles data on the status descriptor. A shell reports exactly once per command. A command that found the
        descriptor may write anything without end: then the descriptor is closed and the shell is killed.
        """
        self._inbox += data
        status = bytes(self._inbox[: _MAX_STATUS_LENGTH + 1]).partition(b"\0")[0]
        is_waiting = self._pending_status is not None and not self._pending_status.done()
        if len(status) <= _MAX_STATUS_LENGTH and len(self._inbox) <= _MAX_REPORT_BYTES and is_waiting:
            count = self._inbox.count(b"\0")
            if count < _REPORT_FIELDS:
                return
            if count == _REPORT_FIELDS and self._inbox.endswith(b"\0") and status.isdigit():
                assert self._pending_status is not None
                _, directory, exports, _ = bytes(self._inbox).split(b"\0")
                self._inbox.clear()
                self.report = ShellReport(directory.removesuffix(b"\n"), exports)
                self._pending_status.set_result(int(status))
                return
        self._status.close()
        self._kill_task = asyncio.ensure_future(self.kill())

    def _close_script(self) -> None:
        if self._script >= 0:
            os.close(self._script)
            self._script = -1
