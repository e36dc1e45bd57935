"""A turn outlives the worker that started it, but only a limited number of workers."""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine

from footplate.domain.errors import HandOver
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.stack.orphan_processes import wait_until
from footplate.wiring.worker import Worker

pytestmark = pytest.mark.timing


async def test_a_worker_that_stops_hands_its_turn_over(idle_engine: Engine) -> None:
    engine = idle_engine
    started = asyncio.Event()

    async def work(turn: TurnContext) -> TurnOutcome:
        if turn.attempt == 1:
            await turn.log.append([events.message("begun")])
            started.set()
            await asyncio.sleep(120)
        assert "begun" in str([event.body for event in turn.turn_events])
        return DONE

    session_id = await engine.session(work)
    async with engine.worker() as first:
        await engine.send(session_id, "hi")
        await started.wait()
    async with engine.worker() as second:
        (turn,) = await engine.wait_for_ended_turns(session_id)
    assert first.id != second.id
    assert (turn.status, turn.attempt) == (TurnStatus.COMPLETED, 2)
    types = await engine.types(session_id)
    assert (types.count(events.AGENT_MESSAGE), types.count(events.STATUS_IDLE)) == (1, 1)


async def test_a_turn_is_handed_over_at_its_safe_point(idle_engine: Engine) -> None:
    """At once, not after the lease of a worker that is still running. A handover does not count as a failed attempt."""
    engine = idle_engine
    rounds = engine.settings.max_attempts + 2
    start_times: list[float] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        start_times.append(asyncio.get_running_loop().time())
        if turn.attempt <= rounds:
            await turn.handover.wait()
            await turn.log.append([events.message(f"attempt {turn.attempt}")])
            raise HandOver
        return DONE

    session_id = await engine.session(work)
    current = engine.worker()
    await current.__aenter__()
    await engine.send(session_id, "hi")
    stopped: list[float] = []
    exits = []
    for number in range(rounds):
        assert await wait_until(partial(_reached, start_times, number + 1), PATIENCE)
        following = engine.worker()
        await following.__aenter__()
        stopped.append(asyncio.get_running_loop().time())
        exits.append(asyncio.create_task(_stop_worker(current)))
        current = following
    (turn,) = await engine.wait_for_ended_turns(session_id)
    await asyncio.gather(*exits, _stop_worker(current))
    assert (turn.status, turn.attempt) == (TurnStatus.COMPLETED, rounds + 1)
    assert await engine.errors(session_id) == []
    waits = sorted(later - before for before, later in zip(stopped, start_times[1:], strict=True))
    assert waits[len(waits) // 2] < engine.settings.lease
    head = await engine.cell.head(session_id)
    assert (head["status"], head["holder"]) == ("idle", None)


async def _stop_worker(worker: AbstractAsyncContextManager[Worker]) -> None:
    await worker.__aexit__(None, None, None)


async def _reached(start_times: list[float], wanted: int) -> bool:
    return len(start_times) >= wanted


async def test_messages_are_queued_until_a_worker_runs(idle_engine: Engine) -> None:
    engine = idle_engine

    async def work(turn: TurnContext) -> TurnOutcome:
        return DONE

    session_id = await engine.session(work)
    for text in ("one", "two", "three"):
        await engine.send(session_id, text)
    assert await engine.turns(session_id) == []
    async with engine.worker():
        assert len(await engine.wait_for_ended_turns(session_id, 3)) == 3


async def test_a_turn_that_kills_its_workers_fails(idle_engine: Engine) -> None:
    engine = idle_engine

    async def work(turn: TurnContext) -> TurnOutcome:
        raise AssertionError("it must not be run again")

    session_id = await engine.session(work)
    await engine.cell.send(engine.principal, session_id, "hi")
    for number in range(engine.settings.max_attempts):
        await engine.cell.claim(session_id, engine.principal, f"wrkr_{number}")
    async with engine.worker():
        await engine.waker.wake(engine.principal.organisation, session_id)
        (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt) == (TurnStatus.FAILED, engine.settings.max_attempts + 1)
    assert "workers were lost" in str(turn.result["error"])
    assert await engine.errors(session_id) == [("unknown_error", "terminal")]


async def test_a_claimed_turn_waits_for_the_lease_of_its_previous_worker(idle_engine: Engine) -> None:
    """Its commands may run until its lease ends, so nothing starts before then."""
    engine = idle_engine
    started: list[float] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        started.append(asyncio.get_running_loop().time())
        return DONE

    session_id = await engine.session(work)
    await engine.cell.send(engine.principal, session_id, "hi")
    async with engine.cell.database.connection() as connection:
        await connection.execute(
            "insert into workers (id, host, lease_until) values ('wrkr_alive', 'test', now() + interval '1 hour')"
        )
    await engine.cell.claim(session_id, engine.principal, "wrkr_alive")

    async def held_by_another() -> bool:
        return (await engine.cell.head(session_id))["holder"] not in {None, "wrkr_alive"}

    async with engine.worker():
        await engine.waker.wake(engine.principal.organisation, session_id)
        assert await wait_until(held_by_another, PATIENCE)
        claimed = asyncio.get_running_loop().time()
        await engine.wait_for_ended_turns(session_id)
    assert started[0] - claimed >= engine.settings.lease - 0.2
