"""The usage of 10,000,000 turns is added up within 300 ms, and 50 sessions/s are archived beside live turns.

Usage: each of the 64 groupings is requested over HTTP, for the default period of 30 days. Archiving: the worker that
runs the live turns also archives inactive sessions. The same number of live turns is measured before and meanwhile.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Final

import asyncpg

from bench.prove.figure import Figure, require, time_limit
from bench.support.cluster import open_cluster
from bench.support.minimal_client import MinimalClient
from bench.support.scale import inactive_sessions, usage_rows
from bench.support.speed.measurement import milliseconds, quantile
from bench.support.speed.timed_conversation import TimedConversation, open_client

_USAGE_LIMIT_MS: Final = 300
_ARCHIVES_A_SECOND: Final = 50
_SLOWER_LIMIT: Final = 1.2
_AT_ONCE: Final = 4
_PATIENCE: Final = 300.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns, copies, seconds = (20_000, 200, 3.0) if quick else (10_000_000, 3_000, 30.0)
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster(environment={"FOOTPLATE_RETENTION": "1d"}))
        client = await open_client(cluster, exits)
        database = await asyncpg.connect(cluster.settings.database_url)
        exits.push_async_callback(database.close)
        archived = await _archive(client, database, copies, seconds)
        rows = await usage_rows.insert_turns(database, turns)
        await database.execute("delete from turns where session_id not like 'sesn_made%'")
        took = await usage_rows.measure_each_grouping(client, turns, repetitions=1 if quick else 5)
    every = [one for repeated in took.values() for one in repeated]
    slowest = max(took, key=lambda name: quantile(took[name], 0.5))
    p95 = milliseconds(quantile(every, 0.95))
    return Figure(
        headline=f"{turns:,} turns added up in {p95:.0f} ms; {archived['a_second']:.0f} sessions/s archived",
        summary=f"{turns:,} turns of {usage_rows.DAYS} days are added up by each of {len(took)} groupings in "
        f"{p95:.0f} ms at p95 (limit {_USAGE_LIMIT_MS}), by the slowest, {slowest}, in "
        f"{milliseconds(quantile(took[slowest], 0.5)):.0f}; {copies:,} sessions archived at "
        f"{archived['a_second']:.0f} per second (at least {_ARCHIVES_A_SECOND}) beside turns whose p95 is "
        f"{archived['ratio']:.2f} times that without archiving (limit {_SLOWER_LIMIT})",
        holds=p95 <= time_limit(_USAGE_LIMIT_MS, quick=quick)
        and (quick or (archived["a_second"] >= _ARCHIVES_A_SECOND and archived["ratio"] <= _SLOWER_LIMIT)),
        details={
            "rows_of_days": rows["usage_by_day"],
            "usage_p50_ms": {name: milliseconds(quantile(times, 0.5)) for name, times in took.items()},
            "archiving": {**archived},
        },
    )


async def _archive(
    client: MinimalClient, database: asyncpg.Connection, copies: int, seconds: float
) -> dict[str, float]:
    original = await TimedConversation.create(client)
    await original.run_turns(1)
    live = [await TimedConversation.create(client) for _ in range(_AT_ONCE)]
    await asyncio.gather(*(conversation.run_turns(5) for conversation in live))
    before = await _turn_seconds(live, until=time.monotonic() + seconds)
    prefix = await inactive_sessions.copy_session(database, original.session_id, copies)
    archiving = asyncio.create_task(inactive_sessions.await_archives(database, prefix, copies, patience=_PATIENCE))
    meanwhile: list[float] = []
    while not archiving.done():
        meanwhile += await _turn_seconds(live, until=time.monotonic() + 1)
    moments = await archiving
    require(holds=len(moments) * 100 >= copies, otherwise=f"only {len(moments) * 100} of {copies} were archived")
    return {
        "a_second": 100 * (len(moments) - 1) / (moments[-1] - moments[0]),
        "ratio": quantile(meanwhile, 0.95) / quantile(before, 0.95),
        "p95_ms_before": milliseconds(quantile(before, 0.95)),
        "p95_ms_meanwhile": milliseconds(quantile(meanwhile, 0.95)),
    }


async def _turn_seconds(live: list[TimedConversation], *, until: float) -> list[float]:
    async def turns(conversation: TimedConversation) -> list[float]:
        begin = len(conversation.turns)
        while time.monotonic() < until:
            await conversation.run_turns(1)
        return [turn.idle - turn.sent for turn in conversation.turns[begin:]]

    return [one for each in await asyncio.gather(*map(turns, live)) for one in each]
