"""Fixtures: a complete cell on the shared stack, and the shared client, which validates every event it receives."""

from collections.abc import AsyncIterator

import pytest_asyncio
from bench.support import quickstart_scenarios
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from tests.compat import probes

from footplate.stack import Stack

_SETTINGS = {
    "FOOTPLATE_MCP_ALLOW": "127.0.0.1",
    "FOOTPLATE_WEB_ALLOW": "127.0.0.1",
    "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1",
    "FOOTPLATE_WEBHOOK_HTTP": "true",
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(stack=stack, environment=_SETTINGS) as running:
        await quickstart_scenarios.install_scripts(running)
        await probes.install(running)
        yield running


@pytest_asyncio.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client(cluster) as opened:
        yield opened
        assert opened.ledger.mismatches == []
