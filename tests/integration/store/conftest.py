"""Creates a database on the shared PostgreSQL, migrated once. Every test uses organisations of its own in it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from bench.support import databases

from footplate.domain.organisations.principals import Principal
from footplate.stack import Stack
from footplate.store.object_store import Objects

from .cell import Cell, LossyDatabase, new_principal

_NAME = "store_tests"


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def cell(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cell]:
    dsn = await databases.create_database(stack, _NAME)
    folder = tmp_path_factory.mktemp("store")
    database = await LossyDatabase.open(dsn, size=10)
    assert isinstance(database, LossyDatabase)
    yield Cell(database, Objects.open(None, folder), folder / "objects", dsn)
    await database.close()
    await databases.drop_database(stack, _NAME)


@pytest.fixture
def principal() -> Principal:
    return new_principal()
