"""Runs CI or tests in a fresh clone of the last commit, without anything else of this checkout."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.ci.lanes import ROOT

_PASSED_VARIABLES: Final = re.compile(
    r"(?i)(PATH|HOME|LANG|UV_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|(https?|all|no)_proxy)"
)


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    exit_code: int | None
    """None if it was stopped at its time limit."""
    seconds: float
    output: str

    @property
    def tail(self) -> str:
        return self.output[-3000:]


@asynccontextmanager
async def fresh_clone() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        clone = Path(directory) / "footplate"
        command = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)]
        await asyncio.to_thread(subprocess.run, command, check=True)
        yield clone


async def run_ci(*lanes: str, limit: float) -> FinishedProcess:
    """Runs `.ci/run` in a fresh clone, which installs its own Python environment."""
    async with fresh_clone() as clone:
        return await run(str(clone / ".ci" / "run"), *lanes, directory=clone, environment=_environment(), limit=limit)


async def run(
    *argv: str, directory: Path = ROOT, environment: Mapping[str, str] | None = None, limit: float = 600
) -> FinishedProcess:
    """Runs a program in its own process group, which is killed at the time limit."""
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=directory,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    output = bytearray()

    async def read() -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(65536):
            output.extend(chunk)
        await process.wait()

    exit_code = None
    try:
        async with asyncio.timeout(limit):
            await read()
        exit_code = process.returncode
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return FinishedProcess(exit_code, time.monotonic() - started, output.decode(errors="replace"))


@asynccontextmanager
async def busy_loops(number: int) -> AsyncIterator[None]:
    """Runs this number of processes that only compute."""
    loops = [await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass") for _ in range(number)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """Returns this process's environment, without the checkout's own programs on PATH. If uv is one of them, they come
    last.
    """
    passed = {name: value for name, value in os.environ.items() if _PASSED_VARIABLES.fullmatch(name)}
    own = Path(sys.executable).parent
    path = [part for part in passed["PATH"].split(os.pathsep) if Path(part) != own]
    uv = shutil.which("uv")
    return {**passed, "PATH": os.pathsep.join([*path, *([str(Path(uv).parent)] if uv else [])])}
