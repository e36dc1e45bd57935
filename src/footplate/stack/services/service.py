"""The base class of a service: one program that runs as a child process, with its own directory, log file and address.

A service can be started, stopped, killed (SIGKILL) and restarted. It keeps its address and its data.
"""

import asyncio
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from footplate.domain.errors import Unavailable
from footplate.stack import child_command, orphan_processes

log = structlog.get_logger(__name__)

_MAX_LOG_BYTES: Final = 16 * 1024 * 1024
_LOG_TAIL_BYTES: Final = 2000


class ServiceFailed(Unavailable):
    """A service did not start, or ended unexpectedly."""

    code = "part_failed"


class ChildProcess(Protocol):
    """The methods of `asyncio.subprocess.Process` that a service uses."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def send_signal(self, number: signal.Signals, /) -> None: ...

    async def wait(self) -> int: ...


class Service(ABC):
    title: str
    """The name shown to people."""
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGTERM
    """The signal that the kernel sends to the service when the launcher dies."""
    owns_directory: bool = True
    """Whether any process of the same program in its directory is an earlier start of it, to be ended with it."""
    start_timeout: float = 60.0
    stop_timeout: float = 20.0

    def __init__(self, directory: Path, *, log_file: Path) -> None:
        self.directory = directory
        self.log = log_file
        self._process: ChildProcess | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """The service's address, without secrets."""

    @property
    @abstractmethod
    def program(self) -> Path: ...

    @abstractmethod
    def arguments(self) -> Sequence[str]: ...

    @abstractmethod
    async def is_ready(self) -> bool:
        """Returns whether the service responds. Does not raise while the server is still starting."""

    async def prepare(self) -> None:
        """Prepares the service's directory. Called before each start."""
        _make_private_directory(self.directory)

    def environment(self) -> Mapping[str, str]:
        """Returns the complete environment. Services inherit nothing from the launcher's environment."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.directory), "LANG": "C.UTF-8", "TZ": "UTC"}

    def working_directory(self) -> Path:
        """Returns the working directory, which also identifies processes of an earlier start."""
        return self.directory

    def command(self) -> list[str]:
        return child_command.command_bound_to_launcher(
            [str(self.program), *self.arguments()], death_signal=self.death_signal
        )

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Ends processes that an earlier launcher left running, starts the service and waits until it responds."""
        if self.is_running:
            return
        await self._end_orphans()
        await self.prepare()
        self._process = await self._spawn()
        try:
            await self._wait_until_ready()
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Sends the stop signal, and SIGKILL if the service has not ended after `stop_timeout` seconds."""
        process, self._process = self._process, None
        if process is None:
            return
        _send_signal(process, self.stop_signal)
        try:
            async with asyncio.timeout(self.stop_timeout):
                await process.wait()
        except TimeoutError:
            log.warning("service did not stop in time and was killed", action="stack.insist", part=self.title)
            _send_signal(process, signal.SIGKILL)
            await process.wait()

    async def kill(self) -> None:
        """Kills the service with SIGKILL, like a crash, together with its child processes."""
        process, self._process = self._process, None
        if process is None:
            return
        _send_signal(process, signal.SIGKILL)
        await process.wait()
        if self.owns_directory:
            await self._end_processes(signal.SIGKILL)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Sends any signal to the service, including SIGSTOP and SIGCONT."""
        if self._process is not None:
            _send_signal(self._process, number)

    async def wait(self) -> int:
        """Waits until the service has ended and returns its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def failure(self, problem: str, advice: str = "") -> ServiceFailed:
        return ServiceFailed(
            f"{self.title} {problem}.\n{self._log_tail()}".rstrip(),
            help_text=f"Its log is at {self.log}. {advice}".rstrip(),
        )

    async def _spawn(self) -> ChildProcess:
        output = open_log(self.log)
        try:
            # In its own session, so that Ctrl-C in the launcher's terminal reaches only the launcher.
            return await asyncio.create_subprocess_exec(
                *self.command(),
                cwd=self.working_directory(),
                env=dict(self.environment()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.close(output)

    async def _wait_until_ready(self) -> None:
        async def is_ready_or_ended() -> bool:
            return not self.is_running or await self.is_ready()

        in_time = await orphan_processes.wait_until(is_ready_or_ended, self.start_timeout)
        if not self.is_running:
            code = self._process.returncode if self._process is not None else None
            raise self.failure(f"exited during startup (exit code {code})")
        if not in_time:
            raise self.failure(
                f"did not respond within {self.start_timeout:.0f} s",
                "If the log is empty, the machine may be too busy to start it: try again when less is running.",
            )

    async def _end_orphans(self) -> None:
        found = await self._end_processes(self.stop_signal) if self.owns_directory else []
        if found:
            log.warning(
                "stopped processes that were left running by an earlier start",
                action="stack.leftover",
                part=self.title,
                pids=found,
            )

    async def _end_processes(self, stop_signal: signal.Signals) -> list[int]:
        return await orphan_processes.end_processes(
            self.program, self.working_directory(), stop_signal=stop_signal, max_seconds=self.stop_timeout
        )

    def _log_tail(self) -> str:
        if not self.log.is_file():
            return ""
        content = self.log.read_bytes()
        tail = content[-_LOG_TAIL_BYTES:]
        if len(content) > _LOG_TAIL_BYTES:
            tail = tail.partition(b"\n")[2] or tail  # drop the partial first line
        return tail.decode(errors="replace")


def _make_private_directory(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)


def open_log(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.is_file() and path.stat().st_size > _MAX_LOG_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _send_signal(process: ChildProcess, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
