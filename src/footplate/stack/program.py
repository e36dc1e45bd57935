"""A process of our own (`python -m …`) as a part: api, worker, or a helper of a test."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from footplate.stack.part import Part

_PROBE_TIMEOUT: Final = 5.0


class Program(Part):
    # At once: its port has to be free for the next start, and the product is made to be killed.
    death_signal = signal.SIGKILL
    # What it starts (a guardian is Python too) has to die by its own means: those are what a proof looks at.
    owns_directory = False

    def __init__(
        self,
        directory: Path,
        *,
        title: str,
        module: str,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str],
        log_file: Path,
        address: str = "",
        answers: Callable[[], Awaitable[bool]] | None = None,
        ready_mark: bytes = b"",
    ) -> None:
        """Ready when `answers` says so and, after this start, its log holds `ready_mark`."""
        super().__init__(directory, log_file=log_file)
        self.title = title
        self._module = module
        self._arguments = tuple(arguments)
        self._environment = dict(environment)
        self._address = address
        self._answers = answers
        self._ready_mark = ready_mark
        self._log_start = 0

    @property
    def address(self) -> str:
        return self._address

    @property
    def program(self) -> Path:
        return Path(sys.executable)

    def arguments(self) -> Sequence[str]:
        return ["-m", self._module, *self._arguments]

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), **self._environment}

    async def prepare(self) -> None:
        await super().prepare()
        self._log_start = self.log.stat().st_size if self.log.is_file() else 0

    async def ready(self) -> bool:
        """Without a probe and a mark, running is all that can be told."""
        return self._ready_mark in self._log_since_start() and (self._answers is None or await self._answers())

    def _log_since_start(self) -> bytes:
        with self.log.open("rb") as log:
            # A log that grew too long was put aside at this start, and the new one began at zero.
            rotated = self.log.stat().st_size < self._log_start
            log.seek(0 if rotated else self._log_start)
            return log.read()


async def http_status(host: str, port: int, path: str, headers: Mapping[str, str] | None = None) -> int | None:
    """The status that GET answers, None when nobody does. A probe needs no HTTP library."""
    lines = [f"GET {path} HTTP/1.0", f"Host: {host}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write("\r\n".join([*lines, "", ""]).encode())
                words = (await reader.readline()).split()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


async def http_ok(host: str, port: int, path: str) -> bool:
    return await http_status(host, port, path) == HTTPStatus.OK
