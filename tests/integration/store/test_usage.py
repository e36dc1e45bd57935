"""Usage is summed from the log, and never across organisations."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from footplate.domain.json import as_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Input
from footplate.domain.ports.engine import Claim
from footplate.domain.ports.usage_report import Grouping, UsageQuery, UsageRow
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.database import Connection
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.usage_report import UsageReader, split_period

from .cell import COMPLETED, Cell, new_principal

_FAILED = TurnOutcome(status=TurnStatus.FAILED, error_type="unknown_error", error_message="no")


async def _turn(cell: Cell, principal: Principal, session_id: str, used: Usage | None, outcome: TurnOutcome) -> None:
    claim = await cell.claim(session_id, principal)
    if used is not None:
        await cell.turns.append(claim, [], usage=used)
    await cell.turns.finish(claim, outcome)


async def _call_tools(cell: Cell, claim: Claim, names: list[str], *, is_error: bool = False) -> None:
    for name in names:
        use = ev.tool_use(name, {}, call_id="call")
        if name.startswith("mcp:"):
            use = ev.mcp_tool_use("github", name.removeprefix("mcp:"), {}, call_id="call")
        await cell.turns.append(claim, [use])
        await cell.turns.append(claim, [ev.tool_result_for(use, [], is_error=is_error, call_id="call")])


async def _query_usage(
    cell: Cell, principal: Principal, *group_by: Grouping, limit: int = 100, **selection: Any
) -> list[UsageRow]:
    now = datetime.now(UTC)
    question = UsageQuery(
        start=now - timedelta(days=1),
        end=now + timedelta(days=1),
        group_by=frozenset(group_by),
        limit=limit,
        **selection,
    )
    return list(await UsageReader(cell.database).query_usage(principal, question))


async def test_turns_tokens_and_cost_are_summed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two", "three")
    used = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=3, cache_write_tokens=2, requests=1)
    await _turn(cell, principal, session_id, used + Usage(cost_microusd=700), COMPLETED)
    await _turn(cell, principal, session_id, used, COMPLETED)
    await _turn(cell, principal, session_id, None, _FAILED)
    (line,) = await _query_usage(cell, principal)
    assert line.group == {}
    assert (line.turns, line.statuses) == (3, {"completed": 2, "failed": 1})
    assert line.usage == used + used + Usage(cost_microusd=700)
    assert line.unpriced_turns == 1
    assert line.seconds > 0


@pytest.mark.requirement("F9")
async def test_usage_is_grouped_by_each_dimension(cell: Cell, principal: Principal) -> None:
    keys = ApiKeys(cell.database)
    colleague = await keys.authenticate(await keys.create_key(principal.organisation, "ann", ["member"]))
    session_id = await cell.session(principal, "one")
    await _turn(cell, principal, session_id, None, COMPLETED)
    await cell.send(colleague, session_id, "two")
    await _turn(cell, principal, session_id, None, COMPLETED)
    other = await cell.session(principal, "three")
    await _turn(cell, principal, other, None, COMPLETED)

    def found(lines: list[UsageRow], name: Grouping) -> dict[object, int]:
        return {line.group[name]: line.turns for line in lines}

    assert found(await _query_usage(cell, principal, "session"), "session") == {session_id: 2, other: 1}
    assert found(await _query_usage(cell, principal, "key"), "key") == {principal.id: 2, colleague.id: 1}
    by_member = await _query_usage(cell, principal, "member")
    assert {(line.group["member"], line.group["member_name"]): line.turns for line in by_member} == {
        (principal.id, None): 2,
        (colleague.id, "ann"): 1,
    }
    assert found(await _query_usage(cell, principal, "agent"), "agent") == {"agent_1": 3}
    assert found(await _query_usage(cell, principal, "model"), "model") == {"claude-opus-5": 3}
    assert found(await _query_usage(cell, principal, "harness"), "harness") == {"native": 3}
    assert found(await _query_usage(cell, principal, "day"), "day") == {datetime.now(UTC).date().isoformat(): 3}
    both = await _query_usage(cell, principal, "session", "key")
    assert {(line.group["session"], line.group["key"]): line.turns for line in both} == {
        (session_id, principal.id): 1,
        (session_id, colleague.id): 1,
        (other, principal.id): 1,
    }
    assert len(await _query_usage(cell, principal, "session", limit=1)) == 1


@pytest.mark.requirement("F9")
@pytest.mark.requirement("R8")
async def test_tool_calls_are_counted_by_name(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two", "three")
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [], usage=Usage(input_tokens=7, requests=2))
    await _call_tools(cell, claim, ["bash", "mcp:search"])
    await _call_tools(cell, claim, ["bash"], is_error=True)
    again = await cell.claim(session_id, principal, "wrkr_2")  # the first worker was lost
    await _call_tools(cell, again, ["read"])
    await cell.turns.append(again, [ev.tool_use("bash", {}, call_id="without a result")])
    assert await _query_usage(cell, principal, "tool") == []
    await cell.turns.finish(again, COMPLETED)
    claim = await cell.claim(session_id, principal)
    asked = ev.custom_tool_use("get_weather", {}, call_id="call")
    await cell.turns.append(claim, [asked])
    await cell.turns.finish(claim, TurnOutcome(status=TurnStatus.AWAITING, pending=(asked.id,)))
    result = Input(type=ev.USER_CUSTOM_TOOL_RESULT, body={"custom_tool_use_id": asked.id, "content": []})
    await cell.send(principal, session_id, result)
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    await _turn(cell, principal, session_id, None, _FAILED)

    lines = {str(line.group["tool"]): line for line in await _query_usage(cell, principal, "tool")}
    calls = {name: line.tool_calls for name, line in lines.items() if line.tool_calls is not None}
    assert {name: (lines[name].turns, found.calls, found.failed) for name, found in calls.items()} == {
        "bash": (1, 3, 2),
        "get_weather": (1, 1, 0),
        "mcp__github__search": (1, 1, 0),
        "read": (1, 1, 0),
    }
    assert lines["bash"].usage.requests == 2
    assert calls["bash"].seconds > 0
    by_session = await _query_usage(cell, principal, "tool", "session", filters={"tool": ["read"]})
    assert [line.group for line in by_session] == [{"session": session_id, "tool": "read"}]
    turns = await cell.reads.turns(principal, session_id, limit=10, before=None)
    assert [sorted(turn.tools) for turn in turns] == [[], ["get_weather"], ["bash", "mcp__github__search", "read"]]


@pytest.mark.requirement("F8")
@pytest.mark.requirement("R8")
async def test_turns_are_queried_by_status_hour_and_parameters(cell: Cell, principal: Principal) -> None:
    few = await cell.session(principal, "one", "two", limits={"max_iterations": 3})
    many = await cell.session(principal, "three", "four", limits={"max_iterations": 50})
    used = Usage(input_tokens=10, requests=4, cost_microusd=5)
    await _turn(cell, principal, few, used, COMPLETED)
    await _turn(cell, principal, few, used, _FAILED)
    await _turn(cell, principal, many, used, COMPLETED)
    await cell.turns.append(await cell.claim(many, principal), [], usage=used)

    def counts(lines: list[UsageRow], name: str) -> dict[object, tuple[int, int]]:
        return {line.group[name]: (line.turns, line.usage.requests) for line in lines}

    by_status = await _query_usage(cell, principal, "status")
    assert counts(by_status, "status") == {"completed": (2, 8), "failed": (1, 4), "running": (1, 4)}
    (total,) = await _query_usage(cell, principal)
    assert total.success_rate == pytest.approx(2 / 3)
    assert (total.turns, total.ended_turns) == (4, 3)
    by_hour = await _query_usage(cell, principal, "hour")
    assert sum(line.turns for line in by_hour) == 4
    assert f"{datetime.now(UTC):%Y-%m-%dT%H}:00:00Z" in {line.group["hour"] for line in by_hour}
    assert counts(await _query_usage(cell, principal, "project"), "project") == {None: (4, 16)}
    by_parameters = await _query_usage(cell, principal, "parameters")
    assert {str(as_object(line.group["parameters"])["max_iterations"]) for line in by_parameters} == {"3", "50"}
    by_session = await _query_usage(cell, principal, "session", min_requests=8)
    assert counts(by_session, "session") == {few: (2, 8), many: (2, 8)}
    assert await _query_usage(cell, principal, "session", min_requests=9) == []
    assert counts(await _query_usage(cell, principal, "status", min_requests=5), "status") == {"completed": (2, 8)}
    (line,) = await _query_usage(cell, principal, parameters={"max_iterations": 3})
    assert line.statuses == {"completed": 1, "failed": 1}
    (line,) = await _query_usage(cell, principal, filters={"status": ["failed"], "session": [few]})
    assert line.turns == 1
    assert await _query_usage(cell, principal, filters={"agent": ["agent_9"]}) == []


@pytest.mark.requirement("F8")
async def test_a_session_has_its_interactions_and_the_time_of_the_last(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two")
    assert (await cell.reads.session(principal, session_id)).last_interaction_at is None
    await _turn(cell, principal, session_id, Usage(requests=2), COMPLETED)
    first = await cell.reads.session(principal, session_id)
    await _turn(cell, principal, session_id, None, _FAILED)  # no response of a model
    second = await cell.reads.session(principal, session_id)
    assert first.usage.requests == 2
    assert first.last_interaction_at is not None
    assert second.last_interaction_at == first.last_interaction_at
    turns = await cell.reads.turns(principal, session_id, limit=2, before=None)
    assert [turn.last_interaction_at for turn in turns] == [None, first.last_interaction_at]


async def test_parameters_that_are_too_long_for_an_index_are_not_shown(cell: Cell) -> None:
    async with cell.database.connection() as connection:
        config = f'{{"mode": "background", "model_parameters": {{"a": "{"x" * 5000}"}}}}'
        shown = await connection.fetchval("select turn_parameters($1::text::json)", config)
        assert shown == '{"mode": "background", "model_parameters": "not shown"}'
        assert await connection.fetchval("""select turn_parameters('{"model_parameters": null}')""") == "{}"


async def test_usage_of_another_organisation_is_not_visible(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "mine")
    await _turn(cell, principal, session_id, Usage(input_tokens=1, requests=1), COMPLETED)
    stranger = new_principal()
    for groupings in ((), ("session",), ("key", "model", "agent", "day", "harness", "session")):
        assert await _query_usage(cell, stranger, *groupings) == []


async def test_only_turns_of_the_queried_period_count(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    await _turn(cell, principal, session_id, None, COMPLETED)
    now = datetime.now(UTC)
    question = UsageQuery(start=now - timedelta(days=9), end=now - timedelta(days=8), group_by=frozenset(), limit=1)
    assert await UsageReader(cell.database).query_usage(principal, question) == []


_MEASURES = """
    sum(turns), sum(microseconds), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_write),
    sum(requests), sum(cost_microusd), sum(priced_turns), sum(unpriced_turns)
"""
_KEYS = "organisation, {}, agent, model, harness, key, project, parameters, status"
_TOTALS = {  # each table of totals, its key, and what it totals
    "usage_by_day": (f"{_KEYS.format('day')}, slot", _MEASURES, "turn_usage"),
    "usage_by_hour": (f"{_KEYS.format('hour')}, slot", _MEASURES, "turn_usage"),
    "tool_usage_by_day": (
        _KEYS.format("day, tool"),
        f"{_MEASURES}, sum(calls), sum(failed_calls), sum(call_microseconds)",
        "turn_tool_usage",
    ),
}


async def _compare_totals(cell: Cell, organisation: str) -> None:
    async with cell.database.connection() as connection:
        for table, (keys, measures, turns) in _TOTALS.items():
            totals, expected = [
                await connection.fetch(
                    f"select {keys}, {measures} from {source} where organisation = $1 {ended} group by {keys} "
                    f"order by {keys}",
                    organisation,
                )
                for source, ended in ((table, ""), (turns, "and ended_at is not null"))
            ]
            assert [tuple(row) for row in totals] == [tuple(row) for row in expected], table
        opened = "select count(*) from {} where organisation = $1"
        assert await connection.fetchval(opened.format("open_turns"), organisation) == await connection.fetchval(
            f"{opened.format('turns')} and ended_at is null", organisation
        )


async def _rebuild_totals(connection: Connection) -> None:
    for table, (keys, measures, turns) in _TOTALS.items():
        await connection.execute(f"truncate {table}")
        await connection.execute(
            f"insert into {table} select {keys}, {measures} from {turns} where ended_at is not null group by {keys}"
        )


@pytest.mark.parametrize("seed", range(1))  # 20 seeds were tried by hand
async def test_daily_sums_match_their_turns(cell: Cell, principal: Principal, seed: int) -> None:
    """Whatever happens to the turns: started, retried, parked, ended, with their sessions archived and deleted."""
    random = Random(seed)
    outcomes = [
        COMPLETED,
        _FAILED,
        *(TurnOutcome(status=status) for status in (TurnStatus.INTERRUPTED, TurnStatus.TIMED_OUT)),
    ]
    sessions = [await cell.session(principal, *("one", "two", "three", "four")) for _ in range(4)]
    for number in range(12):
        session_id = random.choice(sessions)
        claim = await cell.claims.claim(principal.organisation, session_id, f"wrkr_{number}")
        if not isinstance(claim, Claim):
            continue
        for _ in range(random.randint(0, 2)):
            cost = random.choice([None, 0, 250])
            await cell.turns.append(claim, [], usage=Usage(input_tokens=7, requests=1, cost_microusd=cost))
        await _call_tools(cell, claim, [random.choice(["bash", "read"]) for _ in range(random.randint(0, 3))])
        if random.random() < 0.7:  # the others keep running and are claimed again
            await cell.turns.finish(claim, random.choice(outcomes))
        await _compare_totals(cell, principal.organisation)
    for session_id in sessions:
        while isinstance(claim := await cell.claims.claim(principal.organisation, session_id, "wrkr"), Claim):
            await cell.turns.finish(claim, COMPLETED)
        await cell.delete(principal, session_id)
        await _compare_totals(cell, principal.organisation)
    async with cell.database.connection() as connection:
        for table in (*_TOTALS, "open_turns"):
            remaining = f"select count(*) from {table} where organisation = $1"
            assert await connection.fetchval(remaining, principal.organisation) == 0


async def test_concurrent_deletions_do_not_deadlock(cell: Cell, principal: Principal) -> None:
    """The sessions' turns are counted in the same rows, and the sessions are deleted in any order."""
    sessions = [await cell.session(principal, *("one", "two")) for _ in range(24)]
    for session_id in sessions:
        for _ in range(2):
            await _turn(cell, principal, session_id, None, COMPLETED)
    async with cell.database.connection() as connection:  # as if the turns had started on different days
        await connection.execute(
            "update turns set created_at = created_at - (hashtext(id) & 3) * interval '1 day' where organisation = $1",
            principal.organisation,
        )
        await _rebuild_totals(connection)
    await asyncio.gather(*(cell.delete(principal, session_id) for session_id in sessions))
    assert await _query_usage(cell, principal) == []


@pytest.mark.parametrize("offset", [timedelta(), timedelta(hours=5), timedelta(days=1), -timedelta(hours=30)])
async def test_whole_and_partial_days_are_summed(cell: Cell, principal: Principal, offset: timedelta) -> None:
    session_id = await cell.session(principal, *map(str, range(9)))
    now = datetime.now(UTC)
    start_times = [now - timedelta(hours=11 * number) for number in range(9)]
    for started_at in start_times:
        await _turn(cell, principal, session_id, Usage(input_tokens=1, requests=1), COMPLETED)
        async with cell.database.transaction() as connection:  # as if the turn had started then
            await connection.execute("update turns set created_at = $2 where created_at > $1", now, started_at)
            await _rebuild_totals(connection)
    start, end = now - timedelta(days=3) + offset, now - timedelta(hours=10) + offset
    expected = sum(start <= moment < end for moment in start_times)
    for groupings in ((), ("day",), ("session",), ("day", "key")):
        question = UsageQuery(start=start, end=end, group_by=frozenset(groupings), limit=100)
        lines = await UsageReader(cell.database).query_usage(principal, question)
        assert sum(line.turns for line in lines) == expected, groupings


def test_the_last_representable_day_is_handled() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    split = split_period(last - timedelta(days=2), last, datetime.now(UTC), by_hour=False)
    assert split.days[1] == last


async def test_a_usage_query_uses_an_index(cell: Cell, principal: Principal) -> None:
    """A cell has a hundred million turns. A query for an organisation's month must not scan all of them."""
    async with cell.database.transaction() as connection:
        await connection.execute("set local enable_seqscan = off")
        plan = await connection.fetch(
            "explain select count(*) from turns where organisation = $1 and created_at >= $2",
            principal.organisation,
            datetime.now(UTC),
        )
    text = "\n".join(row[0] for row in plan)
    assert re.search("organisation_(session_id_)?created_at", text)
    assert "Seq Scan" not in text


async def test_the_trace_of_a_request_reaches_every_attempt(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await cell.send(principal, session_id, "hello")
    async with cell.database.connection() as connection:
        await connection.execute("update steps set traceparent = $2 where session_id = $1", session_id, parent)
    first = await cell.claim(session_id, principal)
    again = await cell.claim(session_id, principal, "wrkr_2")
    assert (first.trace, again.trace) == (parent, parent)
    assert first.queue_seconds is not None
    assert first.queue_seconds >= 0
    assert again.queue_seconds is None
