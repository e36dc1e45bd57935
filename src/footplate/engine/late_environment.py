"""An environment that is opened by the first call that needs it: most turns of a conversation run no tool."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from footplate.domain.ports import CommandResult, Endpoint, FileInfo, Process
from footplate.domain.running import OpenEnvironment


class LateEnvironment(OpenEnvironment):
    def __init__(self, open_environment: Callable[[float], Awaitable[OpenEnvironment]], deadline: float) -> None:
        """`open_environment` is given the deadline of that moment."""
        self._open_environment = open_environment
        self._deadline = deadline
        self._environment: OpenEnvironment | None = None
        self._closed = False
        self._lock = asyncio.Lock()

    async def ensure_open(self) -> None:
        await self._open()

    async def _open(self) -> OpenEnvironment:
        async with self._lock:
            if self._closed:
                raise RuntimeError("The turn is over: its environment is closed.")
            if self._environment is None:
                self._environment = await self._open_environment(self._deadline)
                self._environment.renew(self._deadline)  # which may have moved meanwhile
            return self._environment

    @property
    def _opened(self) -> OpenEnvironment:
        if self._environment is None:
            raise RuntimeError("The environment is not open yet: call `ensure_open` first.")
        return self._environment

    @property
    def trees(self) -> Mapping[str, Path]:
        return {} if self._environment is None else self._environment.trees

    @property
    def seen(self) -> Mapping[str, str]:
        return {} if self._environment is None else self._environment.seen

    @property
    def used(self) -> bool:
        return self._environment is not None and self._environment.used

    def renew(self, deadline: float) -> None:
        self._deadline = deadline
        if self._environment is not None:
            self._environment.renew(deadline)

    async def aclose(self) -> None:
        self._closed = True
        async with self._lock:
            if self._environment is not None:
                await self._environment.aclose()

    @property
    def root(self) -> str:
        return self._opened.root

    @property
    def home(self) -> str:
        return self._opened.home

    @property
    def scratch(self) -> str:
        return self._opened.scratch

    def reach(self, endpoint: Endpoint) -> Endpoint:
        return self._opened.reach(endpoint)

    async def calm(self, *, but: Process) -> None:
        await (await self._open()).calm(but=but)

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        return await (await self._open()).start(argv, env=env)

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the shell enforces it
        return await (await self._open()).shell(command, timeout=timeout)

    async def restart_shell(self) -> None:
        await (await self._open()).restart_shell()

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as above
    ) -> CommandResult:
        return await (await self._open()).run(argv, stdin=stdin, timeout=timeout)

    async def read(self, path: str) -> bytes:
        return await (await self._open()).read(path)

    async def write(self, path: str, content: bytes) -> None:
        await (await self._open()).write(path, content)

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        return await (await self._open()).list_files(path)

    async def real(self, paths: Sequence[str]) -> Sequence[str | None]:
        return await (await self._open()).real(paths)

    async def directory(self) -> str | None:
        return await (await self._open()).directory()
