"""What all tests share: the real stack, started once per run on free ports in a directory of its own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from footplate.stack import Stack


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running
