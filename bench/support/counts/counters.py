"""Reads every count from outside the product: from PostgreSQL's log, Redis, Temporal and the kernel.

The work is repeated, and a count is the lowest of all repetitions. That removes the additions of a busy machine or a
timer, which appear in some repetitions; an addition by a code change appears in all.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import asyncpg
from redis.asyncio import Redis
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from bench.support.cluster import Cluster
from bench.support.counts.pid_namespace import next_pid
from footplate.engine.temporal.session_waker import workflow_id
from footplate.stack.temporal_connection import connect_temporal
from footplate.store.database import SQL
from footplate.wiring import DEFAULT_ORGANISATION

Counts = dict[str, dict[str, int]]
"""Counts by kind, then by name."""

_MESSAGE: Final = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ", re.MULTILINE)
_STATEMENT: Final = re.compile(r"LOG:  (?:execute [^:]*|statement): (?P<text>.*)", re.DOTALL)
_NAMES: Final = {" ".join(text.split()): name for name, text in SQL.items()}
_PERIODIC: Final = {
    *("deferred_turns", "expire_feed", "heads", "limits", "number_backlog", "renew_lease"),
    "record_api_process",
    *("search_backlog", "search_changes", "search_walk", "record_search_progress", "record_search_walk"),
    *("searchable_session", "searchable_events", "insert_search_document", "delete_search_documents"),
    *("webhook_organisations", "webhooks_to_wake", "delete_old_webhook_secrets", "expire_webhooks"),
    "remove_unused_push_subscriptions",
}
"""Statements of the sweep, and others that run every few seconds beside the turns."""
_TABLES: Final = ("events", "entries", "steps", "turns", "snapshots", "approvals", "feed", "feed_pending")
_UPDATES: Final = "select sum(n_tup_upd)::bigint, sum(n_tup_hot_upd)::bigint from pg_stat_user_tables"
_REPORT_SECONDS: Final = 1.5
"""An idle connection of PostgreSQL reports its statistics within a second."""
_RELOAD_SECONDS: Final = 0.3
_PROCESSES: Final = "processes and threads"
_IDLE_EVENT: Final = "timer_started"
"""The last event of a session's workflow that waits for its next wake."""


@dataclass(slots=True)
class Updates:
    """How many rows were updated, in all tables."""

    all: int = 0
    in_place: int = 0


@dataclass(frozen=True, slots=True)
class Repetitions:
    min_count: int
    max_count: int
    is_expected: Callable[[Counts], bool] = lambda _: True
    """Whether the counts are as expected. If not, the work is repeated beyond the minimum."""

    def are_enough(self, done: int, counts: Counts) -> bool:
        return done >= self.max_count or (done >= self.min_count and self.is_expected(counts))


class Counters:
    def __init__(self, cluster: Cluster, database: asyncpg.Connection, redis: Redis, temporal: Client) -> None:
        self._cluster = cluster
        self._database = database
        self._redis = redis
        self._temporal = temporal

    async def count(
        self, work: Callable[[], Awaitable[object]], repetitions: Repetitions, *, session_id: str
    ) -> Counts:
        """Repeats `work` and returns its counts."""
        sums = [await self._read_sums(session_id)]
        while True:
            await work()
            sums.append(await self._read_sums(session_id))
            counts = {
                kind: _lowest([after[kind] - before[kind] for before, after in pairwise(sums)]) for kind in sums[0]
            }
            if repetitions.are_enough(len(sums) - 1, counts):
                return counts

    async def updates(self) -> Updates:
        """Returns the updates since the cluster's start."""
        await asyncio.sleep(_REPORT_SECONDS)
        row = await self._database.fetchrow(_UPDATES)
        assert row is not None
        return Updates(*row)

    async def _read_sums(self, session_id: str) -> dict[str, Counter[str]]:
        return {
            "history": await self.wait_until_idle(session_id),
            "sql": self._count_statements(),
            "redis": await self._count_commands(),
            "rows": await self._count_rows(session_id),
            "processes": await self._count_processes(),
        }

    async def wait_until_idle(self, session_id: str) -> Counter[str]:
        """Waits until the session's workflow is idle, and returns its history events by type."""
        handle = self._temporal.get_workflow_handle(workflow_id(DEFAULT_ORGANISATION, session_id))
        while True:
            events = [EventType.Name(event.event_type) async for event in handle.fetch_history_events()]
            names = [name.removeprefix("EVENT_TYPE_").lower() for name in events]
            if names[-1] == _IDLE_EVENT:
                return Counter(names)
            await asyncio.sleep(0.02)

    def _count_statements(self) -> Counter[str]:
        """Counts statements by name, and those without a name by their text."""
        assert self._cluster.stack.postgres is not None
        found: Counter[str] = Counter()
        for message in _MESSAGE.split(self._cluster.stack.postgres.log.read_text()):
            if statement := _STATEMENT.match(message):
                text = " ".join(statement["text"].split())
                found[_NAMES.get(text, text.rstrip(";")[:60])] += 1
        return Counter({name: count for name, count in found.items() if name not in _PERIODIC})

    async def _count_commands(self) -> Counter[str]:
        stats = await self._redis.info("commandstats")
        calls = {name.removeprefix("cmdstat_").upper(): found["calls"] for name, found in stats.items()}
        return Counter({name: count for name, count in calls.items() if name != "INFO"})

    async def _count_rows(self, session_id: str) -> Counter[str]:
        counted = {
            table: await self._database.fetchval(f"select count(*) from {table} where session_id = $1", session_id)
            for table in _TABLES
        }
        counted["feed"] += counted.pop("feed_pending")  # a row moves from one to the other
        return Counter(counted)

    async def _count_processes(self) -> Counter[str]:
        pid = self._cluster.workers[0].pid
        assert pid is not None
        return Counter({_PROCESSES: await next_pid(pid)}) if os.geteuid() == 0 else Counter()


@asynccontextmanager
async def open_counters(cluster: Cluster) -> AsyncIterator[Counters]:
    settings = cluster.settings
    database = await asyncpg.connect(settings.database_url)
    await database.execute("set log_statement = 'none'")  # for this connection, whatever the server's setting is
    await _log_statements(database, "all")
    try:
        async with Redis.from_url(settings.redis_url) as redis:
            yield Counters(cluster, database, redis, await connect_temporal(settings.temporal_address))
    finally:
        await _log_statements(database, "none")
        await database.close()


async def _log_statements(database: asyncpg.Connection, which: str) -> None:
    await database.execute(f"alter system set log_statement = '{which}'")
    await database.execute("select pg_reload_conf()")
    await asyncio.sleep(_RELOAD_SECONDS)


def _lowest(counted: list[Counter[str]]) -> dict[str, int]:
    """Returns the lowest count of each name, less the one process that `next_pid` starts."""
    names = sorted({name for one in counted for name in one})
    lowest = {name: min(one[name] for one in counted) - (name == _PROCESSES) for name in names}
    return {name: count for name, count in lowest.items() if count > 0}
