"""Usage reports by every dimension equal the log, and over 10,000,000 turns each takes less than 500 ms at p95.

First, turns of every kind run on several sessions at once: successful and failed tools, refused, retried, interrupted,
limited and parked turns. Each report over HTTP is compared with figures that are computed from the log itself, without
the product's totals. Then turns are generated, and each report is timed: whole months, parts of days, and filters.
"""

from contextlib import AsyncExitStack
from typing import Final

import asyncpg

from bench.prove.figure import Figure, time_limit
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.scale import usage_from_log, usage_rows
from bench.support.speed.measurement import milliseconds, quantile
from bench.support.speed.timed_conversation import open_client
from bench.support.telemetry import workload

_LIMIT_MS: Final = 500
_SEED: Final = 7
_SETTINGS: Final = {"FOOTPLATE_MAX_FAILURES": "1", "FOOTPLATE_RETRY_WAIT": "0.05"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns, sessions, generated = (24, 4, 20_000) if quick else (2_000, 40, 10_000_000)
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster(workers=2, environment=_SETTINGS))
        client = await exits.enter_async_context(Client(cluster))
        http = await open_client(cluster, exits)
        database = await asyncpg.connect(cluster.settings.database_url)
        exits.push_async_callback(database.close)
        await workload.install_scripts(cluster)
        await workload.run_workload(client, turns=turns, sessions=sessions)
        logged = await usage_from_log.read_turns(database)
        compared = await usage_from_log.compare_reports(http, logged, _SEED)
        rows = await usage_rows.insert_turns(database, generated, projects=2)
        took = await usage_rows.measure_reports(http, repetitions=1 if quick else 5)
    p95 = {name: milliseconds(quantile(times, 0.95)) for name, times in took.items()}
    slowest = max(p95, key=lambda name: p95[name])
    return Figure(
        headline=f"{compared} reports over {len(logged):,} turns equal the log; at most {p95[slowest]:.0f} ms",
        summary=f"{compared} reports over {len(logged):,} turns of {sessions} sessions equal the log, by every "
        f"grouping and pair, with filters and parts of the period; over {generated:,} generated turns, each of "
        f"{len(took)} reports takes at most {p95[slowest]:.0f} ms at p95 (limit {_LIMIT_MS}; the slowest: {slowest})",
        holds=len(logged) == turns and p95[slowest] <= time_limit(_LIMIT_MS, quick=quick),
        details={"rows_of_totals": {**rows}, "p95_ms": {**p95}},
    )
