"""Starts and stops PostgreSQL, Redis and Temporal together.

A service is not started if the address of a running server is given instead.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from footplate.stack.launcher_lock import LauncherLock
from footplate.stack.services.postgres import Postgres
from footplate.stack.services.redis import Redis
from footplate.stack.services.service import Service
from footplate.stack.services.temporal import Temporal

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSettings:
    """The addresses of the services, including secrets."""

    database_url: str
    redis_url: str
    temporal_address: str

    def environment(self) -> dict[str, str]:
        """Returns the addresses as environment variables for a Footplate process."""
        return {
            "FOOTPLATE_DATABASE_URL": self.database_url,
            "FOOTPLATE_REDIS_URL": self.redis_url,
            "FOOTPLATE_TEMPORAL_ADDRESS": self.temporal_address,
        }


class Stack:
    """Runs all services inside `async with Stack(directory) as stack:`; `stack.settings` has their addresses.

    A service whose address is given is not started. Start the stack on a thread that lives as long as the services
    should, because the kernel ends them with the thread that started them.
    """

    def __init__(
        self,
        directory: Path,
        *,
        database_url: str | None = None,
        redis_url: str | None = None,
        temporal_address: str | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        temporal_in_memory: bool = False,
    ) -> None:
        self.directory = directory.absolute()
        self._given_addresses = (database_url, redis_url, temporal_address)
        self._lock = LauncherLock(self.directory)
        self.postgres = (
            Postgres(self.directory / "postgres", log_file=self.log_file("postgres"), settings=postgres_settings)
            if database_url is None
            else None
        )
        self.redis = Redis(self.directory / "redis", log_file=self.log_file("redis")) if redis_url is None else None
        self.temporal = (
            Temporal(self.directory / "temporal", log_file=self.log_file("temporal"), in_memory=temporal_in_memory)
            if temporal_address is None
            else None
        )

    def log_file(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"

    @property
    def services(self) -> Sequence[Service]:
        """The services that this stack starts."""
        return [part for part in (self.postgres, self.redis, self.temporal) if part is not None]

    @property
    def settings(self) -> StackSettings:
        database_url, redis_url, temporal_address = self._given_addresses
        return StackSettings(
            database_url=database_url or _started(self.postgres).dsn,
            redis_url=redis_url or _started(self.redis).url,
            temporal_address=temporal_address or _started(self.temporal).address,
        )

    async def start(self) -> None:
        """Starts all services concurrently. If one fails, or the caller is cancelled, all are stopped again."""
        self._lock.acquire()
        try:
            async with asyncio.TaskGroup() as group:
                for service in self.services:
                    group.create_task(service.start())
        except BaseExceptionGroup as failures:
            await self.stop()
            raise failures.exceptions[0] from None
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        # Temporal first: stopping it loses nothing, and it then sends no more work to the others.
        try:
            for service in reversed(self.services):
                await service.stop()
        finally:
            self._lock.release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _started(service: T | None) -> T:
    assert service is not None
    return service
