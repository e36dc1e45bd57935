"""Turns beyond the limit on concurrent turns wait without a worker, and start when there is room."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine
from tests.integration.store.cell import new_principal

from footplate.domain.organisations.limits import ORGANISATION, LimitName
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions.turns import TurnOutcome
from footplate.stack.orphan_processes import wait_until
from footplate.store.resources.limits import LimitStore

pytestmark = pytest.mark.timing


async def _limit_turns(engine: Engine, value: int) -> None:
    store = LimitStore(engine.cell.database)
    await store.set_operator_limit(engine.principal.organisation, LimitName.CONCURRENT_TURNS, ORGANISATION, value)


def _is_deferred(engine: Engine, session_id: str) -> Callable[[], Coroutine[None, None, bool]]:
    async def deferred() -> bool:
        return (await engine.cell.head(session_id))["deferred"] is not None

    return deferred


async def test_a_turn_beyond_the_limit_waits_and_then_runs(engine: Engine) -> None:
    engine = replace(engine, principal=new_principal())
    await _limit_turns(engine, 1)
    release, began = asyncio.Event(), asyncio.Event()

    async def wait(_: TurnContext) -> TurnOutcome:
        began.set()
        await release.wait()
        return DONE

    async def end(_: TurnContext) -> TurnOutcome:
        return DONE

    first, second, third = await engine.session(wait), await engine.session(end), await engine.session(end)
    await engine.send(first, "go")
    await asyncio.wait_for(began.wait(), PATIENCE)
    for session_id in (second, third):
        await engine.send(session_id, "go")
        assert await wait_until(_is_deferred(engine, session_id), PATIENCE)
        await engine.wait_for_workflow_end(session_id)  # it lingers for half a second, and runs nothing
    release.set()
    (before,) = await engine.wait_for_ended_turns(first)
    waited = [(await engine.wait_for_ended_turns(session_id))[0] for session_id in (second, third)]
    assert [turn.attempt for turn in waited] == [1, 1]
    assert before.ended_at is not None
    starts = [(turn.started_at - before.ended_at).total_seconds() for turn in waited if turn.started_at]
    assert starts == sorted(starts), "the oldest turn must start first"


async def test_a_turn_starts_although_the_worker_that_deferred_it_is_lost(engine: Engine) -> None:
    engine = replace(engine, principal=new_principal())
    await _limit_turns(engine, 0)

    async def end(_: TurnContext) -> TurnOutcome:
        return DONE

    session_id = await engine.session(end)
    await engine.cell.send(engine.principal, session_id, "go")  # nothing wakes the session
    await engine.cell.expect_nothing_to_claim(session_id, engine.principal)
    assert (await engine.cell.head(session_id))["deferred"] == ORGANISATION
    await _limit_turns(engine, 1)
    began = time.monotonic()
    await engine.wait_for_ended_turns(session_id)
    assert time.monotonic() - began < PATIENCE
