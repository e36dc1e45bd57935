"""The command line of a user without any configuration, forked from a process that has loaded it."""

import os
from pathlib import Path
from typing import Protocol

import pytest
from bench.support.command_server import CommandServer
from tests.acceptance.cli.cli_cell import Done, finish


class Footplate(Protocol):
    async def __call__(self, *arguments: str, **variables: str) -> Done: ...


@pytest.fixture
def footplate(tmp_path: Path, commands: CommandServer) -> Footplate:
    """Runs a command with `tmp_path` as the home directory."""

    async def run(*arguments: str, **variables: str) -> Done:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "200", **variables}
        return await finish(await commands.spawn(*arguments, cwd=tmp_path, env=environment))

    return run
