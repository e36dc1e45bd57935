"""Kills and restarts `footplate dev`, and kills its services.

The `cell` fixture checks that it stops on SIGTERM.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.support import cluster_processes

from footplate.cli.profile import dev_server
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.orphan_processes import wait_until
from footplate.stack.services.python_service import http_status

pytestmark = pytest.mark.timing

MARK = "acceptance-of-dev"


class Dev:
    def __init__(self, home: Path) -> None:
        self.data = home / "data"
        self.port = find_free_port()
        self._home = home
        self._started: list[asyncio.subprocess.Process] = []

    async def start_again(self) -> str:
        """Starts it while it runs. Returns its error message."""
        process = await self._spawn()
        _, output = await process.communicate()
        assert process.returncode == 1
        return output.decode()

    async def _spawn(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate", "dev"),
            *("--port", str(self.port), "--data-dir", str(self.data)),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "NO_COLOR": "1",
                cluster_processes.CLUSTER_VARIABLE: MARK,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self._started.append(process)
        return process

    async def start(self) -> asyncio.subprocess.Process:
        process = await self._spawn()
        assert process.stdout is not None
        async with asyncio.timeout(120):
            while line := await process.stdout.readline():
                if b"Ctrl-C stops everything" in line:
                    return process
        assert process.stderr is not None
        raise AssertionError((await process.stderr.read()).decode())

    async def responds(self) -> bool:
        secret = dev_server.load_api_key(self.data)
        assert secret is not None
        return await http_status(LOOPBACK, self.port, "/v1/agents", {"x-api-key": secret}) == 200

    async def has_no_orphans(self) -> bool:
        return not cluster_processes.find_cluster_processes(MARK, self.data)

    def find_process(self, program: str) -> int:
        found = cluster_processes.find_cluster_processes(MARK, self.data)
        return next(pid for pid, command in found.items() if program in command and "dev" not in command.split())

    def end(self) -> None:
        for process in self._started:
            if process.returncode is None:
                process.kill()


@pytest.fixture(scope="module")
async def dev(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dev]:
    made = Dev(tmp_path_factory.mktemp("dev"))
    yield made
    made.end()


async def test_dev_starts_again_after_a_kill_and_restarts_a_service_that_dies(dev: Dev) -> None:
    first = await dev.start()
    secret = dev_server.load_api_key(dev.data)
    assert await dev.responds()
    first.kill()
    await first.wait()
    assert await wait_until(dev.has_no_orphans, 30)
    second = await dev.start()
    assert dev_server.load_api_key(dev.data) == secret
    assert await dev.responds()
    done = await dev.start_again()
    assert f"process {second.pid}, at http://127.0.0.1:{dev.port}." in done
    assert second.stderr is not None
    for title, program in (("Redis", "redis-server"), ("Worker 0", "footplate worker"), ("API", "footplate api")):
        os.kill(dev.find_process(program), signal.SIGKILL)
        output = ""
        async with asyncio.timeout(90):
            while f"{title} runs again" not in output:
                output += (await second.stderr.readline()).decode()
        assert f"{title} was killed by SIGKILL. Restarting it; its log is at" in output
    assert await dev.responds()
    assert dev_server.find_dev_server(dev.data) is not None  # with the process id of the new API
    second.terminate()
    assert await second.wait() == 0
    assert await wait_until(dev.has_no_orphans, 30)
    assert dev_server.find_dev_server(dev.data) is None
