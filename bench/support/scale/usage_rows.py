"""Inserts millions of turns of one organisation and measures how long `/v1/usage` takes for each grouping.

The turns belong to a hundred agents with three models and two harnesses, each used with three of twenty keys, in
sessions of twenty turns spread over thirty days. They are inserted by SQL; the daily sums come from the product's own
view.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Final, get_args
from urllib.parse import urlencode

import asyncpg

from bench.prove.figure import require
from bench.support.minimal_client import MinimalClient
from footplate.domain.ports.usage_report import Grouping
from footplate.wiring import DEFAULT_ORGANISATION

DAYS: Final = 30
_IN_A_SESSION: Final = 20
_BATCH: Final = 500_000
_TURNS: Final = """
insert into turns (session_id, id, organisation, position, input_event_id, status, first_seq, controls_seq, config,
                   context, input_tokens, output_tokens, requests, cost_microusd, created_at, started_at, ended_at,
                   principal)
select 'sesn_made_' || lpad(session::text, 9, '0'), 'turn_' || n, $3, n, 'evnt_' || n,
       case when n % 50 = 0 then 'failed' else 'completed' end, 1, 1,
       json_build_object('agent_id', 'agent_' || agent, 'model', 'model_' || agent % 3,
                         'harness', case when agent % 2 = 0 then 'native' else 'claude' end),
       '{}', 1000, 100, 2, case when agent % 3 = 2 then null else 5000 end, began, began, began + interval '7 seconds',
       'key_' || (agent + (session / 100) % 3) % 20
from (
    select n, n / $4::bigint as session, (n / $4::bigint) % 100 as agent,
           date_trunc('day', now()) - ((n * 7919) % $5::bigint) * interval '1 day'
               + (n % 80000) * interval '1 second' as began
    from generate_series($1::bigint, $2::bigint - 1) n
) made
"""
_SUMS: Final = """
insert into usage_by_day
select organisation, day, agent, model, harness, key, slot, sum(turns), sum(pending), sum(running),
       sum(awaiting_tool_results), sum(completed), sum(failed), sum(interrupted), sum(limit_reached), sum(timed_out),
       sum(seconds), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_write), sum(requests),
       sum(cost_microusd), sum(priced_turns), sum(unpriced_turns)
from turn_usage group by organisation, day, agent, model, harness, key, slot
"""


async def insert_turns(database: asyncpg.Connection, turns: int) -> int:
    """Inserts the turns and returns the number of rows of daily sums."""
    await database.execute("set synchronous_commit = off")
    await database.execute("alter table turns disable trigger count_usage")
    for begin in range(0, turns, _BATCH):
        end = min(begin + _BATCH, turns)
        await database.execute(_TURNS, begin, end, DEFAULT_ORGANISATION, _IN_A_SESSION, DAYS, timeout=600)
    await database.execute("alter table turns enable trigger count_usage")
    await database.execute("truncate usage_by_day")
    await database.execute(_SUMS, timeout=600)
    await database.execute("vacuum analyze", timeout=1200)
    rows: int = await database.fetchval("select count(*) from usage_by_day")
    return rows


async def measure_each_grouping(client: MinimalClient, turns: int, repetitions: int) -> dict[str, list[float]]:
    """Requests a usage report for each subset of the groupings, and returns the seconds of each request."""
    took: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for groupings in _subsets(get_args(Grouping)):
            begun = time.perf_counter()
            report = await client.get(f"/v1/usage?{urlencode([('group_by', name) for name in groupings])}")
            took.setdefault(" ".join(groupings) or "nothing", []).append(time.perf_counter() - begun)
            if "session" not in groupings and not report["has_more"]:
                found = sum(line["turns"] for line in report["data"])
                require(holds=found == turns, otherwise=f"{found:,} turns by {groupings}, of {turns:,}")
    return took


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [subset for size in range(len(names) + 1) for subset in itertools.combinations(names, size)]
