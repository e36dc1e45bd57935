"""Relays between the program on a session's terminal and the people who watch it and type.

Output goes to the stream of the session, and into a recording. Keys come from another stream. If Redis is down, the
program continues, and what it printed meanwhile is not shown.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Claim, OpenEnvironment
from footplate.domain.ports.harness import CommandResult, RunningTerminal
from footplate.domain.ports.terminals import TerminalChannel, TerminalChannels, TerminalProcess, TerminalSize
from footplate.domain.text.asciicast import AsciicastRecording
from footplate.domain.text.terminal_output import TerminalOutputFilter
from footplate.domain.text.visible_text import show_block, show_line

log = structlog.get_logger(__name__)

_OUTPUT_SECONDS: Final = 0.5
"""How long background processes may still print after a command has ended, before they are killed."""
_KILL_SECONDS: Final = 2.0
_SNAPSHOT_SECONDS: Final = 15.0
"""How often the files are stored while a program runs: what a lost worker loses at most."""


class SessionTerminals:
    def __init__(
        self,
        channels: TerminalChannels,
        claim: Claim,
        environment: OpenEnvironment,
        store_files: Callable[[], Awaitable[None]],
    ) -> None:
        self._channels = channels
        self._claim = claim
        self._environment = environment
        self._store_files = store_files

    async def open_terminal(self, terminal_id: str, *, command: str | None = None, note: str = "") -> RunningTerminal:
        claim = self._claim
        await self._environment.ensure_open()
        channel = await self._channels.open_channel(claim.organisation, claim.session_id, terminal_id)
        try:
            process = await self._environment.open_terminal(command, channel.size)
        except BaseException:
            await channel.close("The terminal could not be opened.")
            raise
        terminal = _Terminal(process, channel, self._store_files)
        try:
            if note:
                await terminal.show(f"[{show_line(note)}]\r\n".encode())
            if command is not None:
                await terminal.show(_typed_lines(command))
        except BaseException:
            await terminal.stop("The turn ended.")
            raise
        return terminal


class _Terminal(RunningTerminal):
    def __init__(
        self, process: TerminalProcess, channel: TerminalChannel, store_files: Callable[[], Awaitable[None]]
    ) -> None:
        self._process = process
        self._channel = channel
        self._store_files = store_files
        self._filter = TerminalOutputFilter()
        self._started_at = self._used_at = time.monotonic()
        size = channel.size
        self._recording = AsciicastRecording(columns=size.columns, rows=size.rows, started_at=round(time.time()))
        self._result: CommandResult | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._was_used = False

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self._used_at

    @property
    def was_used(self) -> bool:
        return self._was_used

    @property
    def recording(self) -> AsciicastRecording:
        return self._recording

    async def run_to_end(self) -> CommandResult:
        output = asyncio.create_task(self._relay_output())
        others = [asyncio.create_task(work) for work in (self._relay_keys(), self._store_files_regularly())]
        try:
            await failpoints.hit("in_tool")
            exit_code = await self._process.wait()
            await asyncio.wait({output}, timeout=_OUTPUT_SECONDS)
            if not output.done():
                await self._process.kill()
                await asyncio.wait({output}, timeout=_KILL_SECONDS)
            return await self._finish(exit_code, f"exit code {exit_code}")
        finally:
            for task in (output, *others):
                task.cancel()
            await asyncio.gather(output, *others, return_exceptions=True)

    async def stop(self, reason: str, *, timed_out: bool = False) -> CommandResult:
        if self._result is None:
            await self._process.kill()
        return await self._finish(None, reason, timed_out=timed_out)

    async def show(self, data: bytes) -> None:
        self._recording.add_output(time.monotonic() - self._started_at, data)
        await self._channel.publish(data)

    async def _finish(self, exit_code: int | None, reason: str, *, timed_out: bool = False) -> CommandResult:
        if self._result is None:
            self._process.close()
            self._result = self._process.collect_result(exit_code, timed_out=timed_out)
            self._reporting = asyncio.create_task(self._report_end(reason))
        if self._reporting is not None:
            await asyncio.shield(self._reporting)  # an interrupt meanwhile must not lose the report
        return self._result

    async def _report_end(self, reason: str) -> None:
        await self.show(f"\r\n[{reason}]\r\n".encode())
        await self._channel.close(reason)

    async def _relay_output(self) -> None:
        while data := await self._process.read():
            self._used_at = time.monotonic()
            if shown := self._filter.filter(data):
                await self.show(shown)

    async def _relay_keys(self) -> None:
        while True:
            for sent in await self._channel.receive():
                self._used_at, self._was_used = time.monotonic(), True
                if sent.size is not None:
                    await self._resize(sent.size)
                if sent.keys:
                    await self._process.write(sent.keys)

    async def _store_files_regularly(self) -> None:
        while True:
            await asyncio.sleep(_SNAPSHOT_SECONDS)
            if self.idle_seconds < _SNAPSHOT_SECONDS:
                try:
                    await self._store_files()
                except FootplateError as error:  # the end of the turn stores them, or reports it
                    log.warning("files could not be stored", action="terminal.files", reason=error.message)

    async def _resize(self, size: TerminalSize) -> None:
        with contextlib.suppress(OSError):  # the program has ended
            self._process.resize(size)
        self._recording.add_size(time.monotonic() - self._started_at, size.columns, size.rows)
        await self._channel.resize(size)


def _typed_lines(command: str) -> bytes:
    """Returns a prompt and the command, as if a person had typed it. Control characters in it are visible."""
    lines = show_block(command).splitlines() or [""]
    return "".join(f"{'$' if number == 0 else '>'} {line}\r\n" for number, line in enumerate(lines)).encode()
