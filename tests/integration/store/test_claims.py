"""Claims racing other claims and inputs: one waits for the lock on the session's head, or its worker dies midway."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.organisations.principals import Author, Principal
from footplate.domain.ports.engine import Claim, NothingToClaim
from footplate.domain.sessions.steps import StepState
from footplate.domain.sessions.turns import Session, SessionToWake
from footplate.stack.orphan_processes import wait_until
from footplate.store.database import SQL, bind
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.turn_claims import Claims
from footplate.store.resources.api_keys import ApiKeys

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, message, types

pytestmark = pytest.mark.timing

_BEGUN: dict[str, object] = {
    "config": {},
    "context": {},
    "timeout_seconds": 60.0,
    "sort_key": 1,
    "step_event_id": None,
    "step_body": None,
}
_WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def _waiting_claim(cell: Cell, session_id: str, principal: Principal) -> "asyncio.Task[Claim | NothingToClaim]":
    """Starts a claim that waits for the lock on the session's head, which the caller holds."""
    claiming = asyncio.create_task(cell.claims.claim(principal.organisation, session_id, "wrkr_2"))
    async with cell.database.connection() as connection:

        async def waits() -> bool:
            return bool(await connection.fetchval(_WAITING))

        assert await wait_until(waits, 30)
    return claiming


async def test_a_waiting_claim_finds_an_input_committed_meanwhile(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.send(principal, session_id, [message("one")])
        claiming = await _waiting_claim(cell, session_id, principal)
    assert isinstance(await claiming, Claim)


@pytest.mark.requirement("O4")
async def test_no_step_starts_while_another_one_runs(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first", "second")
    running = await cell.claim(session_id, principal, "wrkr_1")
    again = await cell.claim(session_id, principal, "wrkr_2")
    assert (again.turn_id, again.attempt) == (running.turn_id, 2), "another worker continues the same step"
    found = await cell.reads.steps(principal, session_id, states=(), limit=10, after=None)
    assert [step.state for step in found] == [StepState.RUNNING, StepState.PENDING]
    await cell.turns.finish(again, COMPLETED)
    following = await cell.claim(session_id, principal, "wrkr_1")
    assert (following.turn_id != running.turn_id, following.attempt) == (True, 1)


async def test_a_step_that_ended_while_a_claim_waited_is_not_started_again(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    async with cell.database.transaction() as connection:
        head = await connection.fetchrow(SQL["claim_head"], session_id, principal.organisation, "wrkr_1")
        step = await connection.fetchrow(SQL["next_step"], session_id)
        assert head is not None
        assert step is not None
        begun = {
            "session_id": session_id,
            "organisation": principal.organisation,
            "epoch": head["epoch"],
            "turn_id": "turn_1",
            "position": step["position"],
            "input_event_id": step["event_id"],
        }
        assert await connection.fetchrow(
            *bind("begin_turn", **begun, **_BEGUN, running_event_id="sevt_1", holder="wrkr_1", expected_seq=None)
        )
        await connection.fetchval(
            *bind(
                "end_turn",
                session_id=session_id,
                epoch=head["epoch"],
                turn_id="turn_1",
                status="completed",
                result={},
                is_over=True,
                is_running=False,
                step_state="completed",
                obeys_interrupt=False,
                problem=None,
            )
        )
        claiming = await _waiting_claim(cell, session_id, principal)
    assert isinstance(await claiming, NothingToClaim)
    assert [turn["id"] for turn in await cell.rows("turns", session_id)] == ["turn_1"]


async def test_a_claim_has_the_author_of_its_message(cell: Cell, principal: Principal) -> None:
    keys = ApiKeys(cell.database)
    ann = await keys.authenticate(await keys.create_key(principal.organisation, "ann", ["member"]))
    session_id = await cell.session(principal, "one")
    first = await cell.claim(session_id, principal)
    assert first.author == Author(principal.id)
    await cell.turns.finish(first, COMPLETED)
    await cell.send(ann, session_id, "two")
    for attempt in (1, 2):
        claim = await cell.claim(session_id, principal)
        assert (claim.author, claim.attempt) == (Author(ann.id, "ann", "service"), attempt)


async def test_a_worker_that_dies_between_claim_and_begin_loses_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    async with cell.database.connection() as connection:
        claimed = await connection.fetchrow(SQL["claim_step"], session_id, principal.organisation, "wrkr_dead")
        assert claimed is not None
    sweep = WorkerLeases(cell.database)
    assert SessionToWake(principal.organisation, session_id) in await sweep.find_sessions_to_wake(
        older_than=0, lost_for=60, limit=1000
    )
    claim = await cell.claim(session_id, principal)
    assert (claim.attempt, claim.old_holder_may_live) == (1, False)
    async with cell.database.connection() as connection:  # in case the first worker is still alive
        begun = await connection.fetchrow(
            *bind(
                "begin_turn",
                session_id=session_id,
                organisation=principal.organisation,
                epoch=claimed["epoch"],
                turn_id="turn_late",
                position=claimed["position"],
                input_event_id=claimed["event_id"],
                running_event_id="sevt_late",
                holder="wrkr_dead",
                expected_seq=claimed["seq"],
                **_BEGUN,
            )
        )
        assert begun is None
    positions = await cell.positions(session_id, principal)
    assert types(positions) == ["user.message", "user.message", "session.status_running"]


class _PausedClaims(Claims):
    """Waits between the two statements of a claim until the test sets `resumed`."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell.database, cell.objects, default_harness="native")
        self.stopped, self.resumed = asyncio.Event(), asyncio.Event()

    async def _begin_turn(self, *arguments: Any, **options: Any) -> Claim | None:
        if not self.stopped.is_set():
            self.stopped.set()
            await self.resumed.wait()
        return await super()._begin_turn(*arguments, **options)


async def test_a_worker_paused_between_claim_and_begin_cannot_reclaim_the_turn(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal, "one")
    paused = _PausedClaims(cell)
    stale = asyncio.create_task(paused.claim(principal.organisation, session_id, "wrkr_stale"))
    await paused.stopped.wait()
    claim = await cell.claim(session_id, principal)
    paused.resumed.set()
    with pytest.raises(Unavailable, match="Another worker"):
        await stale
    assert (await cell.head(session_id))["epoch"] == claim.epoch
    await cell.turns.finish(claim, COMPLETED)


async def test_a_turn_has_the_tools_that_its_session_got_during_the_claim(cell: Cell, principal: Principal) -> None:
    """In the log, the change comes before the turn."""
    session_id = await cell.session(principal, "one")
    paused = _PausedClaims(cell)
    claiming = asyncio.create_task(paused.claim(principal.organisation, session_id, "wrkr_1"))
    await paused.stopped.wait()
    async with cell.units.unit(principal, None) as unit:
        await unit.update_session(principal, session_id, _renamed)
    paused.resumed.set()
    claim = await claiming
    assert isinstance(claim, Claim)
    assert claim.config.model == "claude-other"


async def test_a_turn_has_the_tools_that_its_session_got_while_the_claim_waited(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal, "one")
    async with cell.units.unit(principal, None) as unit:
        await unit.update_session(principal, session_id, _renamed)
        claiming = await _waiting_claim(cell, session_id, principal)
    claim = await claiming
    assert isinstance(claim, Claim)
    assert claim.config.model == "claude-other"


def _renamed(session: Session) -> Session:
    return replace(session, agent={**session.agent, "model": {"id": "claude-other"}})


async def test_a_turn_that_supersedes_a_parked_one_has_a_holder(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    asked = custom_tool_call()
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [asked])
    await cell.turns.finish(claim, awaiting(asked))
    await cell.send(principal, session_id, "two")
    assert (await cell.claim(session_id, principal, "wrkr_2")).superseded_harness
    assert (await cell.head(session_id))["holder"] == "wrkr_2"


async def test_the_sweep_checks_a_session_from_its_wake_until_it_is_idle(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    sweep = WorkerLeases(cell.database)

    async def is_active() -> bool:
        async with cell.database.connection() as connection:
            await connection.execute("update active_sessions set since = now() - interval '1 hour'")
        await sweep.delete_stale_rows()
        return bool(await cell.rows("active_sessions", session_id))

    assert await is_active()
    claim = await cell.claim(session_id, principal)
    assert await is_active()
    await cell.turns.finish(claim, COMPLETED)
    assert not await is_active()
    await cell.send(principal, session_id, "two")
    assert await is_active()
    async with cell.database.connection() as connection:
        await connection.execute("delete from active_sessions where session_id = $1", session_id)
    claim = await cell.claim(session_id, principal)
    assert await is_active()
    await cell.turns.finish(claim, COMPLETED)
    await cell.delete(principal, session_id)
    assert not await cell.rows("active_sessions", session_id)


async def test_the_sweep_keeps_the_row_of_an_uncommitted_wake(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    async with cell.database.connection() as connection:
        await connection.execute("update active_sessions set since = now() - interval '1 hour'")
    async with cell.units.unit(principal, None) as unit:
        await unit.send(principal, session_id, [message("two")])
        await WorkerLeases(cell.database).delete_stale_rows()
    assert await cell.rows("active_sessions", session_id)


async def test_a_session_without_work_has_no_time_of_waking(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two")
    for more in (True, False):
        await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
        head = await cell.head(session_id)
        assert (head["wake"], head["wake_at"] is not None) == (more, more)


class _OvertakenClaims(Claims):
    """Claims of a worker without containers. `meanwhile` runs after a claim has failed and before that is recorded."""

    def __init__(self, cell: Cell, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(cell.database, cell.objects, default_harness="native", backends=["sandbox"])
        self._meanwhile = meanwhile

    async def _claim(self, organisation: str, session_id: str, worker: str) -> Claim | NothingToClaim:
        try:
            return await super()._claim(organisation, session_id, worker)
        except Exception:
            await self._meanwhile()
            raise


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize("is_overtaken", [False, True])
async def test_a_missing_backend_is_recorded_unless_another_worker_has_claimed_since(
    cell: Cell, principal: Principal, *, is_resumed: bool, is_overtaken: bool
) -> None:
    session_id = await cell.session(principal, "one", backend="docker")
    if is_resumed:
        await cell.claim(session_id, principal)

    async def overtake() -> None:
        if is_overtaken:
            await cell.claim(session_id, principal)

    found = await _OvertakenClaims(cell, overtake).claim(principal.organisation, session_id, "wrkr_host")
    assert isinstance(found, NothingToClaim)
    assert found.needs_backend == "docker"
    assert (await cell.head(session_id))["needs_backend"] == (None if is_overtaken else "docker")
