"""Connects the Claude Agent SDK to a CLI in an environment, with JSON lines over standard input and output."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

import claude_agent_sdk as sdk
import orjson

from footplate.domain.ports.harness import Environment, Process

MAX_MESSAGE_BYTES: Final = 64 << 20
"""Maximum bytes of one message, which may contain a tool's output and images."""

_BURST_LINES: Final = 1000
_BURST_SECONDS: Final = 0.2

Frame = dict[str, Any]


class EnvironmentTransport(sdk.Transport):
    def __init__(
        self,
        environment: Environment,
        argv: Sequence[str],
        env: Mapping[str, str],
        on_message: Callable[[Frame], None],
    ) -> None:
        """`on_message`: receives each message before the SDK does."""
        self._environment = environment
        self._argv = argv
        self._env = env
        self.on_message = on_message
        self._process: Process | None = None
        self._ended = False

    async def connect(self) -> None:
        self._process = await self._environment.start(self._argv, env=self._env)

    async def write(self, data: str) -> None:
        try:
            await self._running_process().write(data.encode())
        except BrokenPipeError as error:
            raise sdk.CLIConnectionError("Claude Code no longer accepts input.") from error

    async def read_messages(self) -> AsyncIterator[Frame]:
        process, pace = self._running_process(), _Throttle()
        async for line in _read_lines(process):
            await pace.wait()
            frame = _parse_frame(line)
            if frame is not None:
                self.on_message(frame)
                yield frame
        self._ended = True
        code = await process.wait()
        if code != 0 and self._process is process:  # otherwise `close` killed it, which is not an error
            raise sdk.ProcessError(f"Claude Code exited with code {code}", exit_code=code, stderr=process.stderr_tail)

    async def close(self) -> None:
        """Kills the process at once. Everything important is already logged."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.kill()  # before its input ends: otherwise it would continue without its hooks
            await process.end_input()

    def is_ready(self) -> bool:
        return self._process is not None

    async def end_input(self) -> None:
        if self._process is not None:
            await self._process.end_input()

    @property
    def alive(self) -> bool:
        return self._process is not None and not self._ended

    async def end_other_processes(self, environment: Environment) -> None:
        await environment.end_other_processes(keep=self._running_process())

    @property
    def stderr_tail(self) -> str:
        return self._process.stderr_tail if self._process is not None else ""

    def _running_process(self) -> Process:
        if self._process is None:
            raise sdk.CLIConnectionError("Claude Code is not running.")
        return self._process


class _Throttle:
    """Throttles a process that writes more than any model does, so that it does not block the worker's other turns."""

    def __init__(self) -> None:
        self._count = 0
        self._since = time.monotonic()

    async def wait(self) -> None:
        self._count += 1
        if self._count < _BURST_LINES:
            return
        early = self._since + _BURST_SECONDS - time.monotonic()
        await asyncio.sleep(max(early, 0))
        self._count, self._since = 0, time.monotonic()


async def _read_lines(process: Process) -> AsyncIterator[bytes]:
    """Complete lines of the process's output. An unfinished line of a killed process is dropped."""
    pieces: list[bytes] = []
    size = 0
    while piece := await process.read():
        first, *rest = piece.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > MAX_MESSAGE_BYTES:
            raise sdk.CLIJSONDecodeError("", ValueError(f"a message is longer than {MAX_MESSAGE_BYTES} bytes"))
        if rest:
            yield b"".join(pieces)
            for line in rest[:-1]:
                yield line
            pieces, size = [rest[-1]], len(rest[-1])


def _parse_frame(line: bytes) -> Frame | None:
    """Parses a message. Other output, which some programs print, is skipped."""
    if not line.startswith(b"{"):
        return None
    try:
        frame = orjson.loads(line)
    except orjson.JSONDecodeError:
        frame = _parse_lenient(line)
    return frame if isinstance(frame, dict) else None


def _parse_lenient(line: bytes) -> object:
    """Parses JSON with unpaired surrogates, which the CLI may write and orjson rejects."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise sdk.CLIJSONDecodeError(line[:200].decode(errors="replace"), error) from error
