"""Connects the SDK to a CLI inside an environment: JSON lines over the standard streams of the process."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

import claude_agent_sdk as sdk
import orjson

from footplate.domain.ports import Environment, Process

LONGEST: Final = 64 << 20
"""Maximum bytes of one message, which may contain a tool's output and images."""

_LINES_AT_ONCE: Final = 1000
_SECONDS_FOR_THEM: Final = 0.2

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
        self.heard = on_message
        self._process: Process | None = None
        self._ended = False

    async def connect(self) -> None:
        self._process = await self._environment.start(self._argv, env=self._env)

    async def write(self, data: str) -> None:
        try:
            await self._running().write(data.encode())
        except BrokenPipeError as error:
            raise sdk.CLIConnectionError("Claude Code no longer accepts input.") from error

    async def read_messages(self) -> AsyncIterator[Frame]:
        process, pace = self._running(), _Pace()
        async for line in _lines(process):
            await pace.keep()
            frame = _parsed(line)
            if frame is not None:
                self.heard(frame)
                yield frame
        self._ended = True
        code = await process.wait()
        if code != 0:
            raise sdk.ProcessError(f"Claude Code exited with code {code}", exit_code=code, stderr=process.last_words)

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

    async def calm(self, environment: Environment) -> None:
        await environment.calm(keep=self._running())

    @property
    def last_words(self) -> str:
        return self._process.last_words if self._process is not None else ""

    def _running(self) -> Process:
        if self._process is None:
            raise sdk.CLIConnectionError("Claude Code is not running.")
        return self._process


class _Pace:
    """Throttles a process that writes more than any model does, so that it does not block the worker's other turns."""

    def __init__(self) -> None:
        self._count = 0
        self._since = time.monotonic()

    async def keep(self) -> None:
        self._count += 1
        if self._count < _LINES_AT_ONCE:
            return
        early = self._since + _SECONDS_FOR_THEM - time.monotonic()
        await asyncio.sleep(max(early, 0))
        self._count, self._since = 0, time.monotonic()


async def _lines(process: Process) -> AsyncIterator[bytes]:
    """Complete lines of the process's output. An unfinished line of a killed process is dropped."""
    pieces: list[bytes] = []
    size = 0
    while piece := await process.read():
        first, *rest = piece.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > LONGEST:
            raise sdk.CLIJSONDecodeError("", ValueError(f"a message is longer than {LONGEST} bytes"))
        if rest:
            yield b"".join(pieces)
            for line in rest[:-1]:
                yield line
            pieces, size = [rest[-1]], len(rest[-1])


def _parsed(line: bytes) -> Frame | None:
    """Parses a message. Other output, which some programs print, is skipped."""
    if not line.startswith(b"{"):
        return None
    try:
        frame = orjson.loads(line)
    except orjson.JSONDecodeError:
        frame = _lenient(line)
    return frame if isinstance(frame, dict) else None


def _lenient(line: bytes) -> object:
    """Parses JSON with unpaired surrogates, which the CLI may write and orjson rejects."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise sdk.CLIJSONDecodeError(line[:200].decode(errors="replace"), error) from error
