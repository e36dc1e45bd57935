"""The statements of a turn find their rows by index, however long the session is."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from footplate.domain.organisations.principals import Principal
from footplate.store.database import PARAMETERS, SQL, Connection
from footplate.store.log.fenced_turn_writes import TURN_STATEMENTS

from .cell import COMPLETED, Cell

_TURNS = 2000
_LIMIT_STATEMENTS = ("used_concurrent_turns", "used_queued_steps", "turn_slots")
_PARTITIONS = """
select tableoid::regclass::text as name from steps where session_id = $1
union select tableoid::regclass::text from turns where session_id = $1
union select tableoid::regclass::text from events where session_id = $1
"""
_DELETE_STATISTICS = """
delete from pg_statistic where starelid in (
    select inhrelid from pg_inherits where inhparent = any(array['steps', 'turns', 'events']::regclass[]))
"""
"""PostgreSQL may have analysed the rows of other tests."""
_SHORT_SESSIONS = """
insert into steps (session_id, position, sort_key, organisation, kind, state, event_id, when_busy, overrides, context)
select session_id || n, n % 50, n % 50, organisation, kind, state, event_id || n, when_busy, overrides, context
from steps, generate_series(1, 20000) as n where session_id = $1
"""
_FILL = (
    """
    insert into steps (session_id, position, sort_key, organisation, kind, state, event_id, when_busy, overrides,
                       context)
    select session_id, -n, -n, organisation, kind, state, event_id || n, when_busy, overrides, context
    from steps, generate_series(1, $2) as n where session_id = $1
    """,
    """
    insert into turns (session_id, id, organisation, position, input_event_id, status, first_seq, controls_seq, config,
                       context, started_at, deadline_at)
    select session_id, id || n, organisation, -n, input_event_id, status, -n, controls_seq, config, context,
           started_at, deadline_at
    from turns, generate_series(1, $2) as n where session_id = $1
    """,
    """
    insert into events (session_id, seq, organisation, turn_id, event_id, type, processed_at, body, entries)
    select session_id, -n, organisation, turn_id, event_id || n, type, processed_at, body, entries
    from events, generate_series(1, $2) as n where session_id = $1 and seq = 1
    """,
)


@pytest.mark.parametrize("statistics", [False, True], ids=["without statistics", "with statistics"])
async def test_no_statement_of_a_turn_reads_the_whole_session(
    cell: Cell, principal: Principal, *, statistics: bool
) -> None:
    session_id = await _ended_turn(cell, principal)
    async with _rolled_back(cell) as connection:
        for fill in _FILL:
            await connection.execute(fill, session_id, _TURNS)
        await connection.execute("analyze steps, turns, events" if statistics else _DELETE_STATISTICS)
        statements = (*TURN_STATEMENTS, "end_turn", "next_step", *_LIMIT_STATEMENTS)
        scans = {name: await _scans(connection, name, session_id) for name in statements}
    expected = {"claim_step", "begin_turn", "finish_turn", "end_turn", *_LIMIT_STATEMENTS}
    assert {name for name, found in scans.items() if found} >= expected
    slow = [f"{name}: {scan}" for name, found in scans.items() for scan in found if not _finds_by_position(scan)]
    assert slow == []


async def test_a_step_is_found_by_its_position_if_most_sessions_have_one(cell: Cell, principal: Principal) -> None:
    session_id = await _ended_turn(cell, principal)
    async with _rolled_back(cell) as connection:
        await connection.execute(_SHORT_SESSIONS, session_id)
        await connection.execute("analyze steps")
        scans = {name: await _scans(connection, name, session_id) for name in (*TURN_STATEMENTS, "end_turn")}
    of_steps = [scan for found in scans.values() for scan in found if scan["Relation Name"].startswith("steps")]
    assert of_steps
    assert [scan for scan in of_steps if not _finds_by_position(scan)] == []


async def _ended_turn(cell: Cell, principal: Principal) -> str:
    session_id = await cell.session(principal, "hello")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    return session_id


@asynccontextmanager
async def _rolled_back(cell: Cell) -> AsyncIterator[Connection]:
    """Opens a transaction for rows and statistics that must not change the plans of other tests."""
    async with cell.database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("set local plan_cache_mode = force_generic_plan")
        try:
            yield connection
        finally:
            await transaction.rollback()


def _finds_by_position(scan: dict[str, Any]) -> bool:
    """Tells whether an index is used for the session and for the position in it."""
    return " AND " in (scan.get("Index Cond") or scan.get("Recheck Cond", ""))


async def _scans(connection: Connection, name: str, session_id: str) -> list[dict[str, Any]]:
    """Returns the scans of the partitions that contain the session."""
    parameters = ["null"] * max(map(int, re.findall(r"\$(\d+)", SQL[name])))
    parameters[PARAMETERS[name].index("session_id") if name in PARAMETERS else 0] = f"'{session_id}'"
    await connection.execute(f"prepare planned as {SQL[name]}")
    plan = await connection.fetchval(f"explain (format json) execute planned ({', '.join(parameters)})")
    await connection.execute("deallocate planned")
    partitions = await connection.fetch(_PARTITIONS, session_id)
    own = {row["name"] for row in partitions}
    return [
        node for node in _nodes(plan[0]["Plan"]) if "Scan" in node["Node Type"] and node.get("Relation Name") in own
    ]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
