"""One database and one task queue for all tests of the engine, and a worker that runs beside them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from bench.support import databases
from tests.integration.engine.cell import Engine
from tests.integration.store.cell import Cell, LossyDatabase, new_principal

from footplate.config import Settings
from footplate.domain import ids
from footplate.stack import Stack
from footplate.stack.temporal_connection import connect_temporal
from footplate.store.object_store import Objects

_NAME = "engine_tests"


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def idle_engine(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    """An engine without a worker."""
    dsn = await databases.create_database(stack, _NAME)
    folder = tmp_path_factory.mktemp("engine")
    settings = Settings(
        database_url=dsn,
        redis_url=stack.settings.redis_url,
        data_dir=folder,
        temporal_address=stack.settings.temporal_address,
        task_queue=ids.new_id("queue"),
        linger=0.5,
        heartbeat_timeout=4,
        lease=1.5,
        max_failures=3,
        retry_wait=0.05,
        sweep_interval=3600,
        drain=3,
        max_attempts=6,
        named_directories=True,
        snapshots="turns",
        kept_sessions=0,
        webhook_allow="127.0.0.1",
        webhook_http=True,
        webhook_seconds=1.5,
        webhook_retry_wait=0.3,
        session_link="https://footplate.example.com/s/{session_id}",
        push_contact="mailto:operator@example.com",
    )
    database = await LossyDatabase.open(dsn, size=10)
    assert isinstance(database, LossyDatabase)
    client = await connect_temporal(stack.settings.temporal_address)
    yield Engine(Cell(database, Objects.open(None, folder), folder), client, settings, new_principal(), folder)
    await database.close()
    await databases.drop_database(stack, _NAME)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def engine(idle_engine: Engine) -> AsyncIterator[Engine]:
    async with idle_engine.worker():
        yield idle_engine
