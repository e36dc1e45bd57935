"""Measures how many bytes the product writes to each store during a period."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg
from redis.asyncio import Redis
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from bench.prove.figure import NotHeld
from bench.support.cluster import Cluster
from footplate.stack import binaries
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

_CLEANING: Final = "select exists (select from pg_stat_activity where backend_type = 'autovacuum worker')"
_CLEANED_WITHIN: Final = 60.0
_TOTAL: Final = re.compile(r"^Total\s+\d+\s+(?P<records>\d+) \[.*?\]\s+(?P<images>\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesWritten:
    log: int
    """PostgreSQL's write-ahead log without full-page images."""
    page_images: int
    """Full-page images: their number depends on the time of the last checkpoint, not on what was written."""
    objects: int
    live: int
    """All bytes sent to Redis, including read commands."""
    history: int
    """Temporal's history of the session's workflow, over all its runs."""

    @property
    def total(self) -> int:
        return self.log + self.objects + self.live + self.history


class StoreWriteMeter:
    """Measures the bytes written by one cluster and one session's workflow between `begin` and `end`."""

    def __init__(self, cluster: Cluster, workflow_id: str, database: asyncpg.Connection, client: Client) -> None:
        self._cluster = cluster
        self._workflow_id = workflow_id
        self._database = database
        self._client = client
        self._runs: dict[str | None, int] = {}
        self._before = (0, 0, 0)
        self._log_position = ""

    @classmethod
    async def open(cls, cluster: Cluster, workflow_id: str) -> "StoreWriteMeter":
        settings = cluster.settings
        return cls(
            cluster,
            workflow_id,
            await asyncpg.connect(settings.database_url),
            await connect_temporal(settings.temporal_address),
        )

    async def aclose(self) -> None:
        await self._set_autovacuum("on")
        await self._database.close()

    async def begin(self) -> None:
        """Starts the measurement. Turns autovacuum off until `end`, because its writes depend on when it runs."""
        await self._set_autovacuum("off")
        await self._database.execute("checkpoint")
        self._before = await self._sizes()
        self._log_position = await self._current_log_position()

    async def end(self) -> BytesWritten:
        records, images = await self._log_bytes(self._log_position, await self._current_log_position())
        objects, live, history = (now - then for now, then in zip(await self._sizes(), self._before, strict=True))
        await self._set_autovacuum("on")
        return BytesWritten(log=records, page_images=images, objects=objects, live=live, history=history)

    async def record_runs(self) -> None:
        """Records the history sizes of the workflow's runs.

        Call it regularly: a run that starts and ends between two calls is missed.
        """
        for run_id in [*self._runs, None]:
            try:
                found = await self._client.get_workflow_handle(self._workflow_id, run_id=run_id).describe()
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                continue  # there is no run before the first turn
            self._runs[found.run_id] = found.raw_description.workflow_execution_info.history_size_bytes

    async def _set_autovacuum(self, state: str) -> None:
        await self._database.execute(f"alter system set autovacuum = {state}")
        await self._database.execute("select pg_reload_conf()")

        async def is_finished() -> bool:
            return state == "on" or not await self._database.fetchval(_CLEANING)

        if not await wait_until(is_finished, _CLEANED_WITHIN):
            raise NotHeld("PostgreSQL's autovacuum did not finish")

    async def _sizes(self) -> tuple[int, int, int]:
        await self.record_runs()
        return self._object_bytes(), await self._redis_bytes(), sum(self._runs.values())

    def _object_bytes(self) -> int:
        root = self._cluster.directory / "data" / "objects"
        return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())

    async def _redis_bytes(self) -> int:
        async with Redis.from_url(self._cluster.settings.redis_url) as redis:
            return int((await redis.info("stats"))["total_net_input_bytes"])

    async def _current_log_position(self) -> str:
        return str(await self._database.fetchval("select pg_current_wal_flush_lsn()::text"))

    async def _log_bytes(self, start: str, end: str) -> tuple[int, int]:
        assert self._cluster.stack.postgres is not None
        process = await asyncio.create_subprocess_exec(
            *(
                str(binaries.find_postgres_program("pg_waldump")),
                "--stats",
                "--path",
                str(self._wal()),
                "-s",
                start,
                "-e",
                end,
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        found = _TOTAL.search(output.decode())
        if found is None:
            raise NotHeld(f"pg_waldump printed no totals: {errors.decode()}")
        return int(found["records"]), int(found["images"])

    def _wal(self) -> Path:
        assert self._cluster.stack.postgres is not None
        return self._cluster.stack.postgres.data_directory / "pg_wal"
