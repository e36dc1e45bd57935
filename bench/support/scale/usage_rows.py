"""Inserts millions of turns of one organisation and measures how long `/v1/usage` takes for each grouping.

The turns belong to a hundred agents with three models and two harnesses, each used with three of twenty keys, in
sessions of twenty turns spread over thirty days, and on some projects. Each turn calls two of five tools. They are
inserted by SQL; the totals come from the product's own views.
"""

import itertools
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import asyncpg

from bench.prove.figure import require
from bench.support.minimal_client import MinimalClient
from footplate.wiring import DEFAULT_ORGANISATION

DAYS: Final = 30
_IN_A_SESSION: Final = 20
_BATCH: Final = 500_000
_TURNS: Final = """
insert into turns (session_id, id, organisation, position, input_event_id, status, first_seq, controls_seq, config,
                   context, input_tokens, output_tokens, requests, cost_microusd, created_at, started_at, ended_at,
                   principal, tools)
select 'sesn_made_' || lpad(session::text, 9, '0'), 'turn_' || n, $3, n, 'evnt_' || n,
       case when n % 50 = 0 then 'failed' else 'completed' end, 1, 1,
       json_build_object('agent_id', 'agent_' || agent, 'model', 'model_' || agent % 3,
                         'harness', case when agent % 2 = 0 then 'native' else 'claude' end,
                         'max_iterations', 200, 'mode', 'interactive', 'model_parameters', '{}'::json,
                         'projects', case when $6::bigint = 0 then '[]'::json else json_build_array(
                             json_build_object('id', 'proj_' || agent / 5 || '_' || (session / 300) % $6)) end),
       '{}', 1000, 100, 2, case when agent % 3 = 2 then null else 5000 end, began, began, began + interval '7 seconds',
       'key_' || (agent + (session / 100) % 3) % 20,
       jsonb_build_object('tool_' || n % 5, '[3, 1, 250000]'::jsonb, 'tool_' || (n + 1) % 5, '[1, 0, 40000]'::jsonb)
from (
    select n, n / $4::bigint as session, (n / $4::bigint) % 100 as agent,
           date_trunc('day', now()) - ((n * 7919) % $5::bigint) * interval '1 day'
               + (n % 80000) * interval '1 second' as began
    from generate_series($1::bigint, $2::bigint - 1) n
) made
"""
_MEASURES: Final = [
    *("turns", "microseconds", "input_tokens", "output_tokens", "cache_read", "cache_write", "requests"),
    *("cost_microusd", "priced_turns", "unpriced_turns"),
]
_CALLS: Final = ["calls", "failed_calls", "call_microseconds"]
_KEYS: Final = "organisation, {}, agent, model, harness, key, project, parameters, status"
_TOTALS: Final = {
    "usage_by_hour": (f"{_KEYS.format('hour')}, slot", _MEASURES, "turn_usage"),
    "usage_by_day": (f"{_KEYS.format('day')}, slot", _MEASURES, "turn_usage"),
    "tool_usage_by_day": (_KEYS.format("day, tool"), _MEASURES + _CALLS, "turn_tool_usage"),
}
_BY_DAY: Final = ("day", "agent", "model", "session", "harness", "key", "member")
_ALL: Final = ("day", "agent", "model", "session", "harness", "member", "project", "parameters", "status", "tool")


async def insert_turns(database: asyncpg.Connection, turns: int, *, projects: int = 0) -> dict[str, int]:
    """Inserts the turns, each agent's on this number of projects. Returns the number of rows of each table."""
    await database.execute("set synchronous_commit = off")
    await database.execute("alter table turns disable trigger count_usage")
    for begin in range(0, turns, _BATCH):
        end = min(begin + _BATCH, turns)
        await database.execute(_TURNS, begin, end, DEFAULT_ORGANISATION, _IN_A_SESSION, DAYS, projects, timeout=600)
    await database.execute("alter table turns enable trigger count_usage")
    rows: dict[str, int] = {}
    for table, (keys, measures, source) in _TOTALS.items():
        sums = ", ".join(f"sum({name})" for name in measures)
        await database.execute(f"truncate {table}")
        await database.execute(
            f"insert into {table} select {keys}, {sums} from {source} where ended_at is not null group by {keys}",
            timeout=1200,
        )
        rows[table] = await database.fetchval(f"select count(*) from {table}")
    await database.execute("vacuum analyze", timeout=1200)
    return rows


async def measure_each_grouping(client: MinimalClient, turns: int, repetitions: int) -> dict[str, list[float]]:
    """Requests a usage report for each subset of the groupings by day, and returns the seconds of each request."""
    took: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for groupings in _subsets(_BY_DAY):
            begun = time.perf_counter()
            report = await client.get(f"/v1/usage?{urlencode([('group_by', name) for name in groupings])}")
            took.setdefault(" ".join(groupings) or "nothing", []).append(time.perf_counter() - begun)
            if "session" not in groupings and not report["has_more"]:
                found = sum(line["turns"] for line in report["data"])
                require(holds=found == turns, otherwise=f"{found:,} turns by {groupings}, of {turns:,}")
    return took


async def measure_reports(client: MinimalClient, repetitions: int) -> dict[str, list[float]]:
    """Requests reports by each grouping and pair, by hour, with filters and for a period that is not whole days.
    Returns the seconds of each request.
    """
    now = datetime.now(UTC)
    queries = [tuple(("group_by", name) for name in names) for size in (0, 1, 2) for names in _pairs(size)]
    filters = (("agent", "agent_7"), ("project", "proj_1_0"), ("status", "failed"), ("parameter", "max_iterations=200"))
    queries += [(("group_by", "model"), one) for one in filters]
    queries += [(("group_by", "tool"), one) for one in (*filters, ("tool", "tool_2"))]
    queries += [(("group_by", "hour"), ("group_by", name)) for name in ("agent", "status")]
    queries.append((("group_by", "hour"), ("from", (now - timedelta(days=3)).isoformat()), ("to", now.isoformat())))
    partial = (
        ("from", (now - timedelta(days=20, minutes=17)).isoformat()),
        ("to", (now - timedelta(hours=7)).isoformat()),
    )
    queries += [(("group_by", name), *partial) for name in ("agent", "status", "project")]
    took: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for query in queries:
            begun = time.perf_counter()
            await client.get(f"/v1/usage?{urlencode(query)}")
            name = " ".join("part" if key == "from" else value for key, value in query if key != "to")
            took.setdefault(name or "nothing", []).append(time.perf_counter() - begun)
    return took


def _pairs(size: int) -> list[tuple[str, ...]]:
    return list(itertools.combinations(_ALL, size))


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [subset for size in range(len(names) + 1) for subset in itertools.combinations(names, size)]
