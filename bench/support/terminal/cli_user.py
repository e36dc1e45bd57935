"""Runs the installed command line as a user with a home directory and an API key, with output to a pipe."""

import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.support.clients import MODEL
from bench.support.cluster import Cluster

PROGRAM: Final = str(Path(sys.executable).parent / "footplate")
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    out: str
    err: str


class CliUser:
    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.home = home
        self.environment: Mapping[str, str] = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "FOOTPLATE_BASE_URL": cluster.base_urls[0],
            "FOOTPLATE_API_KEY": cluster.key,
            "FOOTPLATE_MODEL": MODEL,
            "FOOTPLATE_HARNESS": "native",
        }
        self.operator: Mapping[str, str] = {**cluster.environment(), **self.environment}
        """Variables for the server operator's commands."""

    async def spawn(self, *arguments: str, **extra: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            env={**self.operator, **extra},
            cwd=self.home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, **extra: str) -> CommandResult:
        process = await self.spawn(*arguments, **extra)
        try:
            async with asyncio.timeout(_PATIENCE):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return CommandResult(process.returncode or 0, out.decode(), err.decode())

    async def session(self, *arguments: str) -> str:
        """Starts a session in the background and returns its id."""
        done = await self.run("run", "--background", *arguments)
        return re.sub(r"\s", "", done.out)
