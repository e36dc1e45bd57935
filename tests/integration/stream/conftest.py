"""A real Redis, an in-memory log, a publisher and a hub for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from footplate.domain import ids
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub

from .memory_log import MemoryLog
from .redis_server import RedisServer


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def shared_redis() -> AsyncIterator[RedisServer]:
    server = RedisServer()
    await server.start()
    yield server
    await server.remove()


@pytest_asyncio.fixture(loop_scope="session")
async def own_redis() -> AsyncIterator[RedisServer]:
    """A Redis for tests that stop it."""
    server = RedisServer()
    await server.start()
    yield server
    await server.remove()


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def session_id(log: MemoryLog) -> str:
    session = ids.new_id(ids.SESSION)
    log.append(session)
    return session


@pytest_asyncio.fixture(loop_scope="session")
async def live(shared_redis: RedisServer) -> AsyncIterator[LivePublisher]:
    async with LivePublisher(shared_redis.url) as publisher:
        yield publisher


@pytest_asyncio.fixture(loop_scope="session")
async def live_hub(shared_redis: RedisServer, log: MemoryLog) -> AsyncIterator[StreamHub]:
    """A hub that never compares itself with the log, so that all its events came through Redis."""
    async with StreamHub(shared_redis.url, log, heads_interval=600) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def hub(shared_redis: RedisServer, log: MemoryLog) -> AsyncIterator[StreamHub]:
    async with StreamHub(shared_redis.url, log) as running:
        yield running
