"""One `footplate dev` for all tests of the command line, and the product's own client to inspect it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from bench.support.command_server import CommandServer
from tests.acceptance.cli.cli_cell import Cell

from footplate.client import AsyncFootplate


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cell(tmp_path_factory: pytest.TempPathFactory, commands: CommandServer) -> AsyncIterator[Cell]:
    made = Cell(tmp_path_factory.mktemp("cli"), commands)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def client(cell: Cell) -> AsyncIterator[AsyncFootplate]:
    async with cell.client() as client:
        yield client
