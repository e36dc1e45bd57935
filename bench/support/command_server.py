"""Runs each `footplate` command in a process forked from a server that has already imported the modules.

Each command is a real process with its own session, arguments, environment, directory, output and exit code, but
without the seconds that Python takes to import the modules. Tests of how the program itself starts run
`python -m footplate` instead. When its client dies, the server ends and its commands are killed.

The wire: one datagram for each command, with stdout, stderr and a pipe as descriptors. The command's process id and
then its exit code come back through the pipe.
"""

import asyncio
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import footplate.cli
from footplate import failpoints

SERVER_MODULES: Final = (
    "footplate.wiring.api",
    "footplate.wiring.worker",
    "footplate.harness.native",
    "footplate.harness.claude.harness",
)
"""Modules that an api and a worker import."""
_COMMAND_LINE: Final = "footplate.cli.main:main"
_MAX_REQUEST_BYTES: Final = 1 << 18
_PR_SET_PDEATHSIG: Final = 1


class CommandServer:
    async def start(self, *modules: str) -> None:
        """Starts the server, which imports the command line and `modules`."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.support.command_server", str(theirs.fileno()), *modules),
                cwd=Path(__file__).parents[2],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    async def stop(self) -> None:
        self._socket.close()
        await self._process.wait()

    async def spawn(self, *arguments: str, cwd: Path, env: Mapping[str, str]) -> "Command":
        """Starts a command with pipes for its output."""
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        try:
            status = await self._fork(arguments, cwd, env, their_out, their_err)
        finally:
            os.close(their_out)
            os.close(their_err)
        return Command(int(await status.readline()), status, await _reader(out), await _reader(err))

    async def spawn_logged(
        self, *arguments: str, cwd: Path, env: Mapping[str, str], log: int, program: str = _COMMAND_LINE
    ) -> "ForkedProcess":
        """Starts a command that writes its output to the file descriptor `log`. If that is a terminal, the command also
        reads from it.

        `program`: `module:function`, which is called without arguments and finds them in `sys.argv`.
        """
        status = await self._fork(arguments, cwd, env, log, log, program)
        return ForkedProcess(int(await status.readline()), status)

    async def _fork(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        out: int,
        err: int,
        program: str = _COMMAND_LINE,
    ) -> asyncio.StreamReader:
        called = {"program": program, "arguments": arguments, "cwd": str(cwd), "env": dict(env)}
        request = json.dumps(called).encode()
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._socket, [request], [out, err, theirs])
        finally:
            os.close(theirs)
        return await _reader(ours)


class ForkedProcess:
    """Has the interface of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int, status: asyncio.StreamReader) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.create_task(self._read_exit_code(status))

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def _read_exit_code(self, status: asyncio.StreamReader) -> int:
        self.returncode = int(await status.readline() or -signal.SIGKILL)
        return self.returncode


class Command(ForkedProcess):
    def __init__(
        self, pid: int, status: asyncio.StreamReader, out: asyncio.StreamReader, err: asyncio.StreamReader
    ) -> None:
        super().__init__(pid, status)
        self.stdout = out
        self.stderr = err

    async def communicate(self) -> tuple[bytes, bytes]:
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    return reader


def serve(connection: socket.socket, modules: Sequence[str]) -> None:
    gc.disable()
    cli_modules = (each.name for each in pkgutil.walk_packages(footplate.cli.__path__, "footplate.cli."))
    for module in (*cli_modules, *modules):
        importlib.import_module(module)
    gc.freeze()
    gc.enable()
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, _MAX_REQUEST_BYTES, 3)
        if not request:
            return
        if os.fork() == 0:
            connection.close()
            _watch(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _reap()


def _watch(request: Mapping[str, object], out: int, err: int, status: int) -> None:
    """Runs the command in a child process, and reports the child's id and exit code."""
    _die_with_parent()
    pid = os.fork()
    if pid == 0:
        _die_with_parent()
        os.setsid()
        os.close(status)
        _run(request, out, err)
    os.close(out)
    os.close(err)
    os.write(status, f"{pid}\n".encode())
    _, ended = os.waitpid(pid, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _run(request: Mapping[str, object], out: int, err: int) -> None:
    arguments, env = request["arguments"], request["env"]
    module, _, function = str(request["program"]).partition(":")
    assert isinstance(arguments, Sequence)
    assert isinstance(env, dict)
    if os.isatty(out):
        os.dup2(out, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w", 1 if "PYTHONUNBUFFERED" in env else -1), os.fdopen(2, "w", 1)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(env)
    importlib.reload(failpoints)  # it reads the environment
    sys.argv = ["footplate", *arguments]
    code = 1
    try:
        getattr(importlib.import_module(module), function)()
        code = 0
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        else:
            code = ending.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
