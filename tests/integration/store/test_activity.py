"""The activity of sessions in lists and in the operator's counts follows what happens to them."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.sessions.turns import Activity, ActivityState, SessionState, StallReason, TurnStatus
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.page_query import build_page_query
from footplate.store.resources.session_states import count_activities

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, tool_result_for
from .test_approvals import use

_WORKER, _OTHER = "wrkr_activity", "wrkr_other"


@pytest_asyncio.fixture(loop_scope="session")
async def leases(cell: Cell) -> AsyncIterator[WorkerLeases]:
    """Two live workers and no others."""
    async with cell.database.connection() as connection:
        await connection.execute("delete from workers")
    leases = WorkerLeases(cell.database)
    for worker in (_WORKER, _OTHER):
        await leases.renew_lease(worker, "host", 60, [])
    yield leases
    for worker in (_WORKER, _OTHER):
        await leases.end_lease(worker)


async def _activity(cell: Cell, principal: Principal, session_id: str) -> Activity:
    """Returns the activity that both the list and the single session have. Filters and counts agree with it."""
    (listed,) = await cell.reads.sessions(principal, Page(limit=2), SessionFilter())
    for state in SessionState:
        where = SessionFilter(states=[state])
        found = [each.state for each in await cell.reads.sessions(principal, Page(limit=2), where)]
        counts = await cell.reads.count_sessions(principal, Page(limit=0), SessionFilter())
        assert found == [state] * counts[state] == ([state] if state is listed.state else [])
    assert listed.activity == (await cell.reads.session(principal, session_id)).activity
    return listed.activity


async def test_a_turn_is_followed_from_its_message_to_its_end(
    cell: Cell, principal: Principal, leases: WorkerLeases
) -> None:
    session_id = await cell.session(principal)
    assert (await _activity(cell, principal, session_id)).state == "new"
    await cell.send(principal, session_id, "go")
    assert (await _activity(cell, principal, session_id)).state == "queued"
    claim = await cell.claim(session_id, principal, _WORKER)
    assert (await _activity(cell, principal, session_id)).state == "running"
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    assert (await _activity(cell, principal, session_id)).state == "waiting_for_result"
    await cell.send(principal, session_id, tool_result_for(call.id))
    assert (await _activity(cell, principal, session_id)).state == "queued"
    claim = await cell.claim(session_id, principal, _WORKER)
    held = use("a")
    await cell.turns.append(claim, [held])
    assert (await _activity(cell, principal, session_id)).state == "waiting_for_approval"
    await cell.turns.finish(claim, awaiting(held))
    assert (await _activity(cell, principal, session_id)).state == "waiting_for_approval"
    counts = await count_activities(cell.database)
    assert counts[ActivityState.WAITING_FOR_APPROVAL] >= 1


@pytest.mark.parametrize("status", [TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.INTERRUPTED])
async def test_an_idle_session_shows_how_its_last_turn_ended(
    cell: Cell, principal: Principal, leases: WorkerLeases, status: TurnStatus
) -> None:
    session_id = await cell.session(principal, "first", "second")
    await cell.turns.finish(await cell.claim(session_id, principal, _WORKER), COMPLETED)
    assert (await _activity(cell, principal, session_id)).state == "queued"
    await cell.turns.finish(await cell.claim(session_id, principal, _WORKER), replace(COMPLETED, status=status))
    assert (await _activity(cell, principal, session_id)).state == status.value


async def test_a_session_whose_last_step_failed_has_failed(
    cell: Cell, principal: Principal, leases: WorkerLeases
) -> None:
    session_id = await cell.session(principal, "go")
    await cell.turns.finish(await cell.claim(session_id, principal, _WORKER), replace(COMPLETED, step_failed=True))
    assert (await _activity(cell, principal, session_id)).state == "failed"


async def test_a_session_without_a_live_worker_is_stalled(
    cell: Cell, principal: Principal, leases: WorkerLeases
) -> None:
    session_id = await cell.session(principal, "go")
    before = await count_activities(cell.database)
    await cell.claim(session_id, principal, _WORKER)
    await leases.end_lease(_WORKER)
    assert await _activity(cell, principal, session_id) == Activity(ActivityState.STALLED, StallReason.WORKER_LOST)
    counts = await count_activities(cell.database)
    assert counts[ActivityState.STALLED] - before[ActivityState.STALLED] == 1
    assert counts[ActivityState.RUNNING] == before[ActivityState.RUNNING]
    await leases.end_lease(_OTHER)
    assert await _activity(cell, principal, session_id) == Activity(ActivityState.STALLED, StallReason.NO_WORKER)
    await leases.renew_lease(_WORKER, "host", 60, [session_id])
    assert (await _activity(cell, principal, session_id)).state == "running"


async def test_a_session_that_does_not_move_is_stuck_and_has_a_reason(
    cell: Cell, principal: Principal, leases: WorkerLeases
) -> None:
    async def stuck() -> list[str | None]:
        where = SessionFilter(is_stuck=True)
        found = await cell.reads.sessions(principal, Page(limit=5), where)
        assert sum((await cell.reads.count_sessions(principal, Page(limit=0), where)).values()) == len(found)
        return [each.activity_message for each in found]

    session_id = await cell.session(principal, "go")
    assert await stuck() == []
    async with cell.database.connection() as connection:
        await connection.execute(
            "update session_heads set wake_at = now() - interval '2 minutes' where session_id = $1", session_id
        )
    assert await stuck() == ["Waits for a worker."]
    claim = await cell.claim(session_id, principal, _WORKER)
    await cell.turns.append(claim, [use("a")])
    (listed,) = await cell.reads.sessions(principal, Page(limit=1), SessionFilter())
    assert (listed.activity_message or "").startswith("bash: ")
    assert listed.activity_since is not None
    assert await stuck() == []
    await leases.end_lease(_WORKER)
    assert await stuck() == ["Its worker was lost, and no other worker has taken over yet."]


async def test_a_list_is_planned_once_and_finds_the_last_turns_by_index(cell: Cell, principal: Principal) -> None:
    """Planning a list takes longer than reading it, because the turns have many partitions."""
    session_id = await cell.session(principal, "go")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    sql, arguments = build_page_query("sessions", principal, Page(limit=20), {})
    async with cell.database.connection() as connection:
        await connection.execute(f"prepare listed as {sql}")
        for _ in range(7):
            audiences = "{" + ",".join(arguments[1]) + "}"
            plan = await connection.fetch(f"explain (analyze) execute listed ('{arguments[0]}', '{audiences}')")
        used = await connection.fetchval("select generic_plans from pg_prepared_statements where name = 'listed'")
        await connection.execute("deallocate listed")
    assert used > 0
    scans = [row[0] for row in plan if " on turns_" in row[0] and "never executed" not in row[0]]
    assert len(scans) == 1
    assert "_pkey" in scans[0]
