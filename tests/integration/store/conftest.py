"""A database of its own on the shared PostgreSQL, migrated once; every test has organisations of its own in it."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from footplate.domain.principals import Principal
from footplate.stack import Stack
from footplate.store import migrate
from footplate.store.objects import Objects

from .cell import Cell, Forgetful, somebody

_NAME = "store_tests"


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def cell(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cell]:
    dsn = urlsplit(stack.settings.database_url)._replace(path=f"/{_NAME}").geturl()
    await administer(stack, f"create database {_NAME}")
    await migrate.upgrade(dsn)
    folder = tmp_path_factory.mktemp("store")
    database = await Forgetful.open(dsn, size=10)
    assert isinstance(database, Forgetful)
    yield Cell(database, Objects.open(None, folder), folder / "objects", dsn)
    await database.close()
    await administer(stack, f"drop database {_NAME}")


@pytest.fixture
def principal() -> Principal:
    return somebody()


async def administer(stack: Stack, statement: str) -> None:
    connection = await asyncpg.connect(stack.settings.database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
