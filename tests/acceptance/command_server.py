"""Runs commands of the command line in processes that need not import it again.

A server imports the command line once and forks for every command: a real process with its own arguments, environment,
directory, pipes and exit code, without the second that Python takes to load it. Tests of how the program itself starts
run `python -m footplate` instead.

The wire: one datagram for each command, with the pipes as descriptors. The command's process id and then its exit code
come back through the last of them.
"""

import asyncio
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

import footplate.cli

_LARGEST = 1 << 18


class CommandServer:
    async def start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.acceptance.command_server", str(theirs.fileno())),
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
        request = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": dict(env)}).encode()
        readers, theirs = [], []
        for _ in range(3):
            ours, other = os.pipe()
            theirs.append(other)
            readers.append(await _reader(ours))
        socket.send_fds(self._socket, [request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        out, err, status = readers
        return Command(int(await status.readline()), out, err, status)


class Command:
    """As `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, out: asyncio.StreamReader, err: asyncio.StreamReader, status: asyncio.StreamReader
    ) -> None:
        self.pid = pid
        self.stdout = out
        self.stderr = err
        self.returncode: int | None = None
        self._status = status

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(await self._status.readline())
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    return reader


def serve(connection: socket.socket) -> None:
    for module in pkgutil.iter_modules(footplate.cli.__path__):
        importlib.import_module(f"footplate.cli.{module.name}")
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 3)
        if not request:
            return
        if os.fork() == 0:
            connection.close()
            _watch(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _reap()


def _watch(request: Mapping[str, object], out: int, err: int, status: int) -> None:
    """Fork once more, and report the exit code."""
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _run(request, out, err)
    os.close(out)
    os.close(err)
    os.write(status, f"{pid}\n".encode())
    _, ended = os.waitpid(pid, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def _run(request: Mapping[str, object], out: int, err: int) -> None:
    from footplate.cli.main import main

    arguments, env = request["arguments"], request["env"]
    assert isinstance(arguments, Sequence)
    assert isinstance(env, dict)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["footplate", *arguments]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)  # noqa: T201
        else:
            code = ending.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does it
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
    serve(socket.socket(fileno=int(sys.argv[1])))
