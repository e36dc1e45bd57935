"""Fixtures for all tests: the real stack, started once per run on free ports in its own directory."""

import gc
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog
from bench.support.command_server import CommandServer
from bench.support.forked_program import preloaded
from executing import Source
from hypothesis import settings

from footplate.stack import Stack

# Imported modules stay until the end, so the garbage collector need not scan them.
gc.disable()

# A traceback with local variables takes a second to format, and no lease is renewed meanwhile.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

# No deadline: other jobs use the machine too.
settings.register_profile("sample", max_examples=25, deadline=None)
settings.register_profile("fuzz", max_examples=5000, deadline=None)  # `just fuzz`
settings.load_profile("sample")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("stack")) as running, preloaded():
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def commands() -> AsyncIterator[CommandServer]:
    """A process that has loaded the command line and forks for each command."""
    server = CommandServer()
    await server.start()
    yield server
    await server.stop()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Parses the files with snapshots before any test runs.

    CPython 3.11 sometimes fails when it parses while other threads run ("AST constructor recursion depth mismatch").
    """
    for path in {str(item.path) for item in session.items if hasattr(getattr(item, "module", None), "snapshot")}:
        Source.for_filename(path)
    gc.freeze()
    gc.enable()
