"""Opens the environment of a turn (such as a sandbox or container) at its first use, because most turns run no tool."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import structlog

from footplate.domain.ports.engine import OpenEnvironment
from footplate.domain.ports.harness import CommandResult, Endpoint, FileInfo, Process
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.domain.sessions.shell_state import ShellState

log = structlog.get_logger(__name__)


class LazyEnvironment(OpenEnvironment):
    def __init__(
        self,
        open_environment: Callable[[float], Coroutine[None, None, OpenEnvironment]],
        deadline: float,
        check_lease: Callable[[], None],
    ) -> None:
        """`open_environment` receives the deadline that applies when it is called. `check_lease` raises if the turn has
        lost its lease, because opening may reset the session's files to their state at the start of this turn.
        """
        self._open_environment = open_environment
        self._deadline = deadline
        self._check_lease = check_lease
        self._opening: asyncio.Task[None] | None = None
        self._environment: OpenEnvironment | None = None
        self._closed = False

    async def ensure_open(self) -> None:
        """Open the environment, or wait until it is open. A cancelled caller does not cancel the opening, because
        threads that write files cannot be stopped.
        """
        if self._closed:
            raise RuntimeError("This turn has ended, so its environment is closed.")
        opening = self._opening or self.open_in_background()
        try:
            await asyncio.shield(opening)
        finally:
            if self._opening is opening and opening.done() and self._environment is None:
                self._opening = None  # the next use tries again

    def open_in_background(self) -> "asyncio.Task[None]":
        """Start to open the environment for a turn that will probably use it. The first use raises a failure."""
        self._check_lease()
        self._opening = asyncio.create_task(self._open())
        return self._opening

    async def _open(self) -> None:
        environment = await self._open_environment(self._deadline)
        environment.renew(self._deadline)  # it may have been renewed during the opening
        self._environment = environment

    async def _use(self) -> OpenEnvironment:
        await self.ensure_open()
        return self._opened

    @property
    def _opened(self) -> OpenEnvironment:
        if self._environment is None:
            raise RuntimeError("The environment is not open yet: call `ensure_open` first.")
        return self._environment

    @property
    def trees(self) -> Mapping[str, Path]:
        return {} if self._environment is None else self._environment.trees

    @property
    def inside_paths(self) -> Mapping[str, str]:
        return {} if self._environment is None else self._environment.inside_paths

    @property
    def outputs(self) -> Path | None:
        return None if self._environment is None else self._environment.outputs

    @property
    def home_files(self) -> Path | None:
        return None if self._environment is None else self._environment.home_files

    @property
    def was_used(self) -> bool:
        return self._environment is not None and self._environment.was_used

    @property
    def has_run_commands(self) -> bool:
        return self._environment is not None and self._environment.has_run_commands

    @property
    def platform(self) -> str:
        return self._opened.platform

    @property
    def shell_state(self) -> ShellState | None:
        return None if self._environment is None else self._environment.shell_state

    def restore_shell(self, state: ShellState) -> None:
        if self._environment is not None:
            self._environment.restore_shell(state)

    def renew(self, deadline: float) -> None:
        self._deadline = deadline
        if self._environment is not None:
            self._environment.renew(deadline)

    async def aclose(self) -> None:
        """Close the environment. If it is still being opened, wait for that first."""
        self._closed = True
        if self._opening is not None:
            await asyncio.wait({self._opening})
            if not self._opening.cancelled() and (error := self._opening.exception()) is not None:
                log.info("the environment could not be opened", action="turn.environment_not_opened", reason=str(error))
        if self._environment is not None:
            await self._environment.aclose()

    @property
    def root(self) -> str:
        return self._opened.root

    @property
    def working_directory(self) -> str:
        return self._opened.working_directory

    @property
    def home(self) -> str:
        return self._opened.home

    @property
    def scratch(self) -> str:
        return self._opened.scratch

    def translate_endpoint(self, endpoint: Endpoint) -> Endpoint:
        return self._opened.translate_endpoint(endpoint)

    async def end_other_processes(self, *, keep: Process) -> None:
        await (await self._use()).end_other_processes(keep=keep)

    async def open_terminal(self, command: str | None, size: TerminalSize) -> TerminalProcess:
        return await (await self._use()).open_terminal(command, size)

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        return await (await self._use()).start(argv, env=env)

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the shell enforces it
        return await (await self._use()).shell(command, timeout=timeout)

    async def restart_shell(self) -> None:
        await (await self._use()).restart_shell()

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as above
    ) -> CommandResult:
        return await (await self._use()).run(argv, stdin=stdin, timeout=timeout)

    async def read(self, path: str) -> bytes:
        return await (await self._use()).read(path)

    async def write(self, path: str, content: bytes) -> None:
        await (await self._use()).write(path, content)

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        return await (await self._use()).list_files(path)

    async def resolve_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        return await (await self._use()).resolve_paths(paths)

    async def shell_directory(self) -> str | None:
        return await (await self._use()).shell_directory()
