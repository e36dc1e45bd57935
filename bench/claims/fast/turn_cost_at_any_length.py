"""Turn 1,000 costs as much as turn 10: in the worker's CPU time, in time outside the model request, in pages read.

A session runs 1,000 turns. Then it alternates with a session of 10 turns, ten turns each: first without table
statistics, then after `ANALYZE`. Finally, the pages that PostgreSQL reads of each table are compared between the long
session and a new one of 10 turns in the same partitions, so that the indexes have the same depth. Other work of the
server reads pages too, so the lowest of three counts is taken, and only tables that a turn reads are compared.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from statistics import mean
from typing import Final

import asyncpg

from bench.prove.figure import Figure, require
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import MinimalClient
from bench.support.speed.measurement import milliseconds
from bench.support.speed.process_cpu import process_tree_cpu_seconds
from bench.support.speed.table_pages import pages_read
from bench.support.speed.timed_conversation import TimedConversation, Turn, add_request_times, open_client
from footplate.domain.json import JsonObject

_CPU_LIMIT: Final = 1.3
_TIME_LIMIT: Final = 1.1
_PAGES_LIMIT: Final = 1.1
_LIMIT_QUICK: Final = 3.0
_EARLY: Final = 10
_BLOCK: Final = 10
_PAGE_COUNTS: Final = 3
_IS_IN_PARTITION: Final = "select satisfies_hash_partition('steps'::regclass, 32, $1, $2::text)"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns, blocks = (60, 1) if quick else (1000, 5)
    phases: dict[str, _Phase] = {}
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster(postgres_settings={"autovacuum": "off"}))
        client = await open_client(cluster, exits)
        await cluster.model.clear()
        database = await asyncpg.connect(cluster.settings.database_url)
        exits.push_async_callback(database.close)
        long = await TimedConversation.create(client)
        await long.run_turns(turns)
        every = [long]
        for name in ("without statistics", "with statistics"):
            short = await _start_conversation(client)
            every.append(short)
            phases[name] = await _Phase.run(cluster, long, short, blocks)
            await database.execute("analyze")
        pages_short, pages_long = _PageCounts(), _PageCounts()
        for _ in range(_PAGE_COUNTS):
            short = await _start_conversation(
                client, await _create_session_in_same_partitions(client, database, long.session_id)
            )
            every.append(short)
            pages_short.add(await pages_read(database, short.run_turns(_BLOCK)))
            pages_long.add(await pages_read(database, long.run_turns(_BLOCK)))
        await add_request_times(cluster, [turn for conversation in every for turn in conversation.turns])
    require(holds=pages_short.lowest("events") > 0, otherwise="no pages of events were counted")
    growth = {
        name: (pages_long.lowest(name) + _BLOCK) / (pages_short.lowest(name) + _BLOCK)
        for name in pages_short.tables | pages_long.tables
        if max(pages_short.lowest(name), pages_long.lowest(name)) >= _BLOCK
    }
    worst = max(growth, key=growth.__getitem__)
    cpu = max(phase.cpu_ratio for phase in phases.values())
    time = max(phase.time_ratio for phase in phases.values())
    limits = (_LIMIT_QUICK,) * 3 if quick else (_CPU_LIMIT, _TIME_LIMIT, _PAGES_LIMIT)
    return Figure(
        headline=f"turn {turns:,} against turn {_EARLY}: CPU {cpu:.2f}, time {time:.2f}, pages {growth[worst]:.2f}",
        summary=f"after {turns:,} turns, a turn takes {cpu:.2f} times the worker's CPU time of one after {_EARLY} "
        f"(limit {_CPU_LIMIT}) and {time:.2f} times the time outside the model request (limit {_TIME_LIMIT}), each the "
        f"worse of with and without table statistics; of {len(growth)} tables, {worst} has {growth[worst]:.2f} times "
        f"the pages read, the others less (limit {_PAGES_LIMIT})",
        holds=cpu <= limits[0] and time <= limits[1] and growth[worst] <= limits[2],
        details={
            **{name: phase.details for name, phase in phases.items()},
            "pages_short": {name: pages_short.lowest(name) for name in sorted(growth)},
            "pages_long": {name: pages_long.lowest(name) for name in sorted(growth)},
        },
    )


async def _start_conversation(client: MinimalClient, session_id: str | None = None) -> TimedConversation:
    conversation = (
        await TimedConversation.create(client) if session_id is None else TimedConversation(client, session_id)
    )
    await conversation.run_turns(_EARLY)
    return conversation


async def _create_session_in_same_partitions(
    client: MinimalClient, database: asyncpg.Connection, session_id: str
) -> str:
    """Creates sessions until one has its rows in the partitions of `session_id`."""
    partition = await database.fetchval(
        "select tableoid::regclass::text from steps where session_id = $1 limit 1", session_id
    )
    while True:
        created = (await TimedConversation.create(client)).session_id
        if await database.fetchval(_IS_IN_PARTITION, int(partition.rpartition("_")[2]), created):
            return created


class _PageCounts:
    """The pages read of each table, counted several times."""

    def __init__(self) -> None:
        self._counts: list[dict[str, int]] = []

    def add(self, counts: dict[str, int]) -> None:
        self._counts.append(counts)

    @property
    def tables(self) -> set[str]:
        return {name for counts in self._counts for name in counts}

    def lowest(self, table: str) -> int:
        return min(counts.get(table, 0) for counts in self._counts)


class _Phase:
    def __init__(self) -> None:
        self.cpu: dict[str, float] = {"long": 0.0, "short": 0.0}
        self.turns: dict[str, list[Turn]] = {"long": [], "short": []}

    @classmethod
    async def run(cls, cluster: Cluster, long: TimedConversation, short: TimedConversation, blocks: int) -> "_Phase":
        phase = cls()
        for _ in range(blocks):
            for name, conversation in (("long", long), ("short", short)):
                before = _worker_cpu(cluster)
                await conversation.run_turns(_BLOCK)
                phase.cpu[name] += _worker_cpu(cluster) - before
                phase.turns[name] += conversation.turns[-_BLOCK:]
        return phase

    @property
    def cpu_ratio(self) -> float:
        return self.cpu["long"] / self.cpu["short"]

    @property
    def time_ratio(self) -> float:
        return _outside(self.turns["long"]) / _outside(self.turns["short"])

    @property
    def details(self) -> JsonObject:
        return {
            "cpu_ms": {name: milliseconds(used / len(self.turns[name])) for name, used in self.cpu.items()},
            "outside_ms": {name: milliseconds(_outside(turns)) for name, turns in self.turns.items()},
            "until_request_ms": {
                name: milliseconds(mean(turn.until_request for turn in turns)) for name, turns in self.turns.items()
            },
        }


def _outside(turns: Sequence[Turn]) -> float:
    return mean(turn.outside_request for turn in turns)


def _worker_cpu(cluster: Cluster) -> float:
    pid = cluster.workers[0].pid
    assert pid is not None
    return process_tree_cpu_seconds(pid)
