"""Gives the content a past: sessions of different ages, and usage on earlier days. The API cannot write either."""

from collections.abc import Mapping
from typing import Final

import asyncpg

from bench.support.cluster import Cluster

_DAYS: Final = 75
_MOVE_SESSION: Final = "update sessions set created_at = now() - make_interval(mins => $2) where id = $1"
_MOVE_ITEMS: Final = (
    "update approvals set created_at = now() - make_interval(mins => $2) where session_id = $1",
    "update session_heads set problem_at = now() - make_interval(mins => $2) where session_id = $1",
)
# The runs of schedules are some hours apart, and forks are from the last hour.
_MOVE_RUNS: Final = (
    """
    update deployment_runs r set created_at = now() - interval '7 hours' * n.number
    from (select id, row_number() over (order by created_at desc) as number from deployment_runs) n where n.id = r.id
    """,
    """
    update sessions s set created_at = r.created_at from deployment_runs r where r.session_id = s.id
    """,
    "update sessions set created_at = now() - interval '41 minutes' where fork is not null",
)
_LENGTHEN_TURNS: Final = """
update turns set started_at = ended_at - make_interval(secs => 9 + (abs(hashtext(id)) % 140)) where ended_at is not null
"""
# Weekdays have more than weekends, and each row has a share of its own on each day.
_COPY_USAGE: Final = """
insert into usage_by_day
select u.organisation, u.day - d.ago, u.agent, u.model, u.harness, u.key, u.project, u.parameters, u.status, u.slot,
       {sums}
from usage_by_day u
cross join generate_series(1, $1::int) d(ago)
cross join lateral (
    select (case when extract(isodow from u.day - d.ago) > 5 then 1 else 5 end)
           * (1 + abs(hashtext(u.agent || u.key || d.ago::text)) % 5) * (1.2 - d.ago * 0.008) as share
) f
where u.day = (now() at time zone 'utc')::date and u.status in ('completed', 'failed')
"""
_COUNTED: Final = (
    *("turns", "microseconds", "input_tokens", "output_tokens", "cache_read", "cache_write", "requests"),
    *("cost_microusd", "priced_turns", "unpriced_turns"),
)
_NEED_BACKEND: Final = (
    """update sessions set environment = environment || '{"backend": "docker"}' where id = $1""",
    "update session_heads set status = 'running', needs_backend = 'docker' where session_id = $1",
    "insert into active_sessions select id, now(), organisation from sessions where id = $1 on conflict do nothing",
)


async def write_history(cluster: Cluster, minutes: Mapping[str, int], *, waits_for_a_backend: str) -> None:
    """`minutes`: how old each session is, by id."""
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        for session_id, age in minutes.items():
            await connection.execute(_MOVE_SESSION, session_id, age)
            for statement in _MOVE_ITEMS:
                await connection.execute(statement, session_id, max(age - 2, 0))
        for statement in (*_MOVE_RUNS, _LENGTHEN_TURNS):
            await connection.execute(statement)
        sums = ", ".join(f"ceil(u.{name} * f.share)::bigint" for name in _COUNTED)
        await connection.execute(_COPY_USAGE.replace("{sums}", sums), _DAYS)
        for statement in _NEED_BACKEND:
            await connection.execute(statement, waits_for_a_backend)
    finally:
        await connection.close()
