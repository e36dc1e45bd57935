"""Runs a pgbouncer in transaction mode in front of a PostgreSQL."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.service import Service


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Pgbouncer(Service):
    """`settings`: further lines of its configuration."""

    title = "pgbouncer"

    def __init__(self, directory: Path, database_url: str, *, connections: int = 3, settings: str = "") -> None:
        super().__init__(directory, log_file=directory / "log")
        self._server = urlsplit(database_url)
        self.port = find_free_port()
        self._connections, self._settings = connections, settings

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the same database through the pooler."""
        return self._server._replace(netloc=f"{self._server.username}:{self._server.password}@{self.address}").geturl()

    @property
    def program(self) -> Path:
        return Path(find_pgbouncer() or "pgbouncer")

    def arguments(self) -> Sequence[str]:
        return [*(["-u", "nobody"] if os.geteuid() == 0 else []), str(self.directory / "pgbouncer.ini")]

    async def prepare(self) -> None:
        await super().prepare()
        users = self.directory / "users.txt"
        users.write_text(f'"{self._server.username}" "{self._server.password}"\n')
        (self.directory / "pgbouncer.ini").write_text(
            f"""[databases]
* = host={self._server.hostname} port={self._server.port}
[pgbouncer]
listen_addr = {LOOPBACK}
listen_port = {self.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {self._connections}
max_client_conn = 1000
{self._settings}
"""
        )

    async def is_ready(self) -> bool:
        try:
            await (await asyncpg.connect(self.url, statement_cache_size=0, timeout=5)).close()
        except (OSError, asyncpg.PostgresError):
            return False
        return True
