"""Records which API processes run, with which code, for `footplate migrate`. Workers record it with their lease."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog

from footplate.domain.errors import FootplateError
from footplate.store.database import Database
from footplate.store.migrations.schema_revisions import known_revision

log = structlog.get_logger(__name__)

_INTERVAL_SECONDS: Final = 10.0
"""Much shorter than the time after which `footplate migrate` regards a process as lost."""


class ApiProcessRegistry:
    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def registered(self, process_id: str, *, host: str, version: str) -> AsyncIterator[None]:
        """Records the process, and removes the record at the end."""

        async def record() -> None:
            await self._database.fetch("record_api_process", process_id, host, version, known_revision())

        await record()
        task = asyncio.create_task(_record_periodically(record))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(FootplateError):
                await self._database.fetch("end_api_process", process_id)


async def _record_periodically(record: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(_INTERVAL_SECONDS)
        try:
            await record()
        except Exception as error:  # noqa: BLE001 - the next attempt follows
            log.warning(
                "this process could not record that it runs; will retry", action="process.failed", reason=repr(error)
            )
