"""A turn runs on a worker that offers its backend. If there is none, the session says so and waits."""

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from tests.integration.engine.cell import DONE, PATIENCE, Engine

from footplate.domain.json import JsonObject
from footplate.domain.ports.api import Input
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Activity, ActivityState, StallReason, TurnOutcome
from footplate.engine.temporal import workflows
from footplate.engine.temporal.session_waker import workflow_id
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing


@pytest.mark.requirement("K6")
@pytest.mark.requirement("R5")
async def test_a_turn_runs_on_a_worker_that_offers_its_backend(
    idle_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = idle_engine
    monkeypatch.setattr(workflows, "_BACKEND_WAIT", timedelta(seconds=0.5))

    holders: list[str] = []

    async def record_holder(turn: TurnContext) -> TurnOutcome:
        async with engine.cell.database.connection() as connection:
            query = "select holder from session_heads where session_id = $1"
            holders.append(await connection.fetchval(query, turn.session_id))
        return DONE

    async def is_stalled(session_id: str) -> bool:
        activity = (await engine.cell.reads.session(engine.principal, session_id)).activity
        return activity == Activity(ActivityState.STALLED, StallReason.NO_BACKEND)

    async def has_asked_again() -> bool:
        handle = engine.client.get_workflow_handle(workflow_id(engine.principal.organisation, session_id))
        types = [event.event_type for event in (await handle.fetch_history()).events]
        return EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT in types

    session_id = await engine.cell.session(engine.principal, backend="docker")
    engine.harness.work[session_id] = record_holder
    async with engine.worker(backends=["sandbox"]) as on_host:
        await engine.send(session_id, "in a container")
        assert await wait_until(lambda: is_stalled(session_id), PATIENCE)
        assert await wait_until(has_asked_again, PATIENCE)
        assert await engine.turns(session_id) == []
        async with engine.worker(backends=["docker"]) as in_container:
            await engine.wait_for_ended_turns(session_id, 1)
            body: JsonObject = {"content": [{"type": "text", "text": "on the host"}]}
            on_the_host = Input(type=events.USER_MESSAGE, body=body, overrides={"shell_mode": "host"})
            await engine.send(session_id, on_the_host)
            await engine.wait_for_ended_turns(session_id, 2)
            await engine.send(session_id, "in a container again")
            turns = await engine.wait_for_ended_turns(session_id, 3)
            offered = await engine.cell.reads.count_workers_by_backend()
            assert (offered["sandbox"], offered["docker"]) == (1, 1)
    assert holders == [in_container.id, on_host.id, in_container.id]
    assert [turn.attempt for turn in turns] == [1, 1, 1]
    assert not await is_stalled(session_id)
