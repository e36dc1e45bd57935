"""Runs commands on terminals and in pipes, forked from a process that has already loaded the command line."""

import asyncio
import fcntl
import importlib
import json
import os
import pkgutil
import pty
import re
import select
import struct
import sys
import termios
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import footplate.cli

_QUESTION: Final = re.compile(rb"\nAllow it\? \[[^\]\n]*\] \Z")
_MORE: Final = re.compile(rb"\n[0-9,]+ more lines\. Press Enter to show them, q to skip: \Z")
_STYLE: Final = re.compile(rb"\x1b\[[0-9;]*m|\r\x1b\[2K")


@dataclass(frozen=True, slots=True)
class Screen:
    code: int
    out: str
    """On a terminal it includes stderr."""
    err: str


class Screens:
    """Runs commands one after the other. Several of these run at the same time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.support.display.screens"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 28,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def run_command(self, *arguments: str, width: int | None, typed: str = "x") -> Screen:
        """Runs a command on a terminal of this width, or with pipes. The response to every prompt is `typed`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": arguments, "env": self._environment, "width": width, "typed": typed}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return Screen(**json.loads(await self._process.stdout.readline()))


def serve() -> None:
    for module in pkgutil.walk_packages(footplate.cli.__path__, "footplate.cli."):
        importlib.import_module(module.name)
    for line in sys.stdin:
        request = json.loads(line)
        shown = _on_pipes(request) if request["width"] is None else _on_terminal(request)
        sys.stdout.write(f"{json.dumps(shown)}\n")
        sys.stdout.flush()


def _on_terminal(request: Mapping[str, Any]) -> dict[str, Any]:
    pid, ours = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, request["width"], 0, 0))
        _run(request)
    shown = b""
    handled = 0
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
            tail = _STYLE.sub(b"", shown[handled:][-4096:])
            if _QUESTION.search(tail):
                handled = len(shown)
                os.write(ours, f"{request['typed']}\n".encode())
            elif _MORE.search(tail):
                handled = len(shown)
                os.write(ours, b"\n")
    except OSError:  # the program has ended
        pass
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    return {"code": os.waitstatus_to_exitcode(status), "out": shown.replace(b"\r\n", b"\n").decode(), "err": ""}


def _on_pipes(request: Mapping[str, Any]) -> dict[str, Any]:
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, out_end, err_end)):
            os.dup2(descriptor, number)
        os.closerange(3, 64)
        _run(request)
    os.close(out_end)
    os.close(err_end)
    shown = {out: b"", err: b""}
    waiting = [out, err]
    while waiting:
        for ready in select.select(waiting, [], [])[0]:
            piece = os.read(ready, 1 << 16)
            shown[ready] += piece
            if not piece:
                waiting.remove(ready)
    _, status = os.waitpid(pid, 0)
    os.close(out)
    os.close(err)
    return {"code": os.waitstatus_to_exitcode(status), "out": shown[out].decode(), "err": shown[err].decode()}


def _run(request: Mapping[str, Any]) -> None:
    from footplate.cli.main import main

    code = 1
    try:
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = ["footplate", *request["arguments"]]
        main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
