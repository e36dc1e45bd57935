"""The workflow of a session that was created with its task ends with the turn. A later message starts another."""

from dataclasses import replace

import pytest
from temporalio.api.enums.v1 import EventType
from tests.integration.engine.cell import DONE, Engine

from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions.turns import TurnOutcome
from footplate.engine.temporal.session_waker import workflow_id

pytestmark = pytest.mark.timing


async def _complete(turn: TurnContext) -> TurnOutcome:
    del turn
    return DONE


async def test_the_workflow_ends_without_a_timer_and_the_next_message_starts_another(idle_engine: Engine) -> None:
    engine = replace(idle_engine, settings=idle_engine.settings.model_copy(update={"linger": 30.0}))
    organisation = engine.principal.organisation
    async with engine.worker():
        session_id = await engine.session(_complete)
        await engine.cell.send(engine.principal, session_id, "hi")
        await engine.waker.wake(organisation, session_id, ends_when_idle=True)
        await engine.wait_for_ended_turns(session_id)
        await engine.wait_for_workflow_end(session_id)
        history = await engine.client.get_workflow_handle(workflow_id(organisation, session_id)).fetch_history()
        assert EventType.EVENT_TYPE_TIMER_FIRED not in {event.event_type for event in history.events}
        assert await engine.send(session_id, "again")
        await engine.wait_for_ended_turns(session_id, 2)
        assert await engine.is_open(session_id)


async def test_a_message_during_the_turn_is_processed(engine: Engine) -> None:
    organisation = engine.principal.organisation
    sent: list[bool] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        if not sent:
            sent.append(True)
            await engine.send(turn.session_id, "again")
        return DONE

    async with engine.worker():
        session_id = await engine.session(work)
        await engine.cell.send(engine.principal, session_id, "hi")
        await engine.waker.wake(organisation, session_id, ends_when_idle=True)
        await engine.wait_for_ended_turns(session_id, 2)
        await engine.wait_for_workflow_end(session_id)
