"""Runs a Python module (`python -m …`) as a service: the API, a worker, or a test helper."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from footplate.stack.services.service import Service

_PROBE_TIMEOUT: Final = 5.0


class PythonService(Service):
    # SIGKILL, because the port must be free at once for the next start. Footplate's processes tolerate being killed.
    death_signal = signal.SIGKILL
    # Its own child processes (a guardian is Python too) must end by themselves: the benchmarks verify that they do.
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
        probe: Callable[[], Awaitable[bool]] | None = None,
        ready_mark: bytes = b"",
    ) -> None:
        """The service is ready when `probe` returns true and its log, since this start, contains `ready_mark`."""
        super().__init__(directory, log_file=log_file)
        self.title = title
        self._module = module
        self._arguments = tuple(arguments)
        self._environment = dict(environment)
        self._address = address
        self._probe = probe
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

    async def is_ready(self) -> bool:
        """Returns whether the service is ready. Without a probe and a mark, a running process counts as ready."""
        return self._ready_mark in self._log_since_start() and (self._probe is None or await self._probe())

    def _log_since_start(self) -> bytes:
        with self.log.open("rb") as log:
            # A log that grew too long was rotated at this start, so the new one began at offset zero.
            rotated = self.log.stat().st_size < self._log_start
            log.seek(0 if rotated else self._log_start)
            return log.read()


async def http_status(host: str, port: int, path: str, headers: Mapping[str, str] | None = None) -> int | None:
    """Returns the status code of a GET request, or None if there is no response. Needs no HTTP library."""
    lines = [f"GET {path} HTTP/1.0", f"Host: {host}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write("\r\n".join([*lines, "", ""]).encode())
                fields = (await reader.readline()).split()
            finally:
                writer.close()
    except OSError:
        return None
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


async def is_http_ok(host: str, port: int, path: str) -> bool:
    return await http_status(host, port, path) == HTTPStatus.OK
