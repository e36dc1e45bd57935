"""Runs a program independently of the environment's shell, and communicates with it through its standard streams.

The worker buffers a limited amount of output. When the buffer is full, the program blocks until its output is read.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final, Self

from footplate.domain.ports.harness import Process
from footplate.environments.processes.output_capture import PipeReader, write_all
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner

_READ_AHEAD_BYTES: Final = 1 << 20
"""The number of bytes that are read ahead."""
_CHUNK_BYTES: Final = 1 << 18
_STDERR_TAIL_BYTES: Final = 8192


class StreamingProcess(Process):
    """A running program. Create it with `start`; the creator calls `close` after it has exited."""

    def __init__(
        self, command: SpawnedCommand, stdin: int, reader: asyncio.StreamReader, transport: asyncio.BaseTransport
    ) -> None:
        self._command = command
        self._stdin = stdin
        self._reader = reader
        self._transport = transport
        self._write_lock = asyncio.Lock()
        self._stderr_tail = bytearray()
        self._errors: PipeReader | None = None

    @classmethod
    async def start(cls, spawner: Spawner, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Self:
        theirs_in, ours_in = os.pipe2(os.O_CLOEXEC)
        ours_out, theirs_out = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours_in, False)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_AHEAD_BYTES)
        tail = bytearray()
        errors = PipeReader(lambda data: _append_tail(tail, data))
        transport: asyncio.BaseTransport | None = None
        try:
            # From here on the transport owns the descriptor.
            transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_out, "rb", buffering=0)
            )
            fds = {0: theirs_in, 1: theirs_out, 2: errors.writer}
            command = await spawner.spawn(argv, cwd=cwd, env=env, fds=fds)
        except BaseException:
            os.close(ours_in)
            if transport is not None:
                transport.close()
            errors.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
            errors.close_writer()
        process = cls(command, ours_in, reader, transport)
        process._stderr_tail, process._errors = tail, errors
        return process

    @property
    def command(self) -> SpawnedCommand:
        return self._command

    async def write(self, data: bytes) -> None:
        async with self._write_lock:
            if self._stdin < 0:
                raise BrokenPipeError("The standard input of the process is closed.")
            await write_all(self._stdin, data)

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK_BYTES)

    async def end_input(self) -> None:
        async with self._write_lock:
            self._close_input()

    async def wait(self) -> int:
        return await self._command.wait()

    async def kill(self) -> None:
        await self._command.kill()

    @property
    def stderr_tail(self) -> str:
        return self._stderr_tail.decode(errors="replace").strip()

    def close(self) -> None:
        """Closes the worker's ends of the streams. Safe to call again."""
        self._close_input()
        self._transport.close()
        if self._errors is not None:
            self._errors.close()

    def _close_input(self) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1


def _append_tail(tail: bytearray, data: bytes) -> None:
    tail += data
    del tail[:-_STDERR_TAIL_BYTES]
