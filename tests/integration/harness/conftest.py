"""Fixtures of the harness tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.support.mcp_server.server_process import McpProcess

from .doubles import LocalEnvironment, World


@pytest.fixture
def environment(tmp_path: Path) -> LocalEnvironment:
    return LocalEnvironment(tmp_path)


@pytest.fixture
def world(environment: LocalEnvironment) -> World:
    return World(environment)


@pytest.fixture(scope="module")
def mcp_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    started = McpProcess(tmp_path_factory.mktemp("mcp") / "notes")
    started.start()
    yield started
    started.kill()


@pytest.fixture
def notes(mcp_process: McpProcess) -> McpProcess:
    """A real MCP server, which has noted nothing yet."""
    mcp_process.delete_notes()
    return mcp_process
