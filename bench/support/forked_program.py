"""Starts an api or a worker by forking a process that has imported both, which saves two CPU seconds per start.

Tests and small samples fork programs inside `preloaded()`. Elsewhere, and if a program sets PYTHONPATH, it starts as
in production. `/proc/PID/environ` of a forked program shows the environment of the process that it was forked from.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from bench.support.command_server import SERVER_MODULES, CommandServer, ForkedProcess
from footplate.stack import PythonService
from footplate.stack.services.service import ChildProcess, open_log

_STDERR: Final = 2


class _Preloaded:
    """The server that programs are forked from. It starts at the first use."""

    def __init__(self) -> None:
        self._server: CommandServer | None = None
        self._starting = asyncio.Lock()

    async def server(self) -> CommandServer:
        async with self._starting:
            if self._server is None:
                self._server = CommandServer()
                await self._server.start(*SERVER_MODULES)
        return self._server

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()


_preloaded: Final[list[_Preloaded]] = []


@asynccontextmanager
async def preloaded(*, enabled: bool = True) -> AsyncIterator[None]:
    """Forks programs that are started inside this context."""
    if not enabled:
        yield
        return
    opened = _Preloaded()
    _preloaded.append(opened)
    try:
        yield
    finally:
        _preloaded.remove(opened)
        await opened.stop()


@contextmanager
def real_starts() -> Iterator[None]:
    """Starts programs inside this context as in production, without forking."""
    set_aside, _preloaded[:] = [*_preloaded], []
    try:
        yield
    finally:
        _preloaded[:] = set_aside


async def fork(program: str, *arguments: str, env: Mapping[str, str]) -> ForkedProcess:
    """Calls a function (`module:function`) in a process of its own, inside `preloaded()`. `sys.argv` has the arguments,
    and its output is that of this process.
    """
    server = await _preloaded[-1].server()
    return await server.spawn_logged(*arguments, cwd=Path.cwd(), env=env, log=_STDERR, program=program)


class ForkedProgram(PythonService):
    async def _spawn(self) -> ChildProcess:
        module, *arguments = self.arguments()[1:]
        if not _preloaded or module != "footplate" or "PYTHONPATH" in self.environment():
            return await super()._spawn()
        output = open_log(self.log)
        try:
            server = await _preloaded[-1].server()
            return await server.spawn_logged(
                *arguments, cwd=self.working_directory(), env=self.environment(), log=output
            )
        finally:
            os.close(output)
