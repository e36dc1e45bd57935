"""Temporal loses its state, or is restored from an older copy: every accepted message is processed, once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio
from bench.support.crash import temporal_state
from tests.integration.engine.cell import DONE, Engine

from footplate.domain import ids
from footplate.domain.errors import Unavailable
from footplate.domain.ports.engine import Claim, NothingToClaim
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.engine.temporal.session_waker import workflow_id
from footplate.stack.orphan_processes import wait_until
from footplate.stack.services.temporal import Temporal
from footplate.stack.temporal_connection import connect_temporal
from footplate.store.log.turn_claims import Claims

pytestmark = pytest.mark.timing


@dataclass(slots=True)
class BlockedTurns:
    """Turns that wait until they are released. `attempts` has one entry for each that started."""

    attempts: list[int] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, turn: TurnContext) -> TurnOutcome:
        self.attempts.append(turn.attempt)
        self.started.set()
        await self.release.wait()
        return DONE

    async def wait_for_start(self) -> None:
        async with asyncio.timeout(30):
            await self.started.wait()
        self.started.clear()


@pytest_asyncio.fixture(loop_scope="session")
async def temporal(tmp_path: Path) -> AsyncIterator[Temporal]:
    server = Temporal(tmp_path / "temporal", log_file=tmp_path / "temporal.log")
    await server.start()
    yield server
    await server.stop()


async def connect_engine(engine: Engine, temporal: Temporal) -> Engine:
    settings = engine.settings.model_copy(
        update={"temporal_address": temporal.address, "task_queue": ids.new_id("queue"), "sweep_interval": 1}
    )
    return replace(engine, client=await connect_temporal(temporal.address), settings=settings)


async def replace_state(temporal: Temporal, copy: Path | None = None) -> None:
    await temporal.kill()
    temporal_state.replace_state(temporal, copy)
    await temporal.start()


async def test_lost_state_disturbs_no_turn_and_strands_no_message(idle_engine: Engine, temporal: Temporal) -> None:
    engine, turns = await connect_engine(idle_engine, temporal), BlockedTurns()
    async with engine.worker():
        running, waiting = await engine.session(turns.run), await engine.session(turns.run)
        await engine.send(running, "one", "two")
        await turns.wait_for_start()
        await temporal.kill()
        with pytest.raises(Unavailable):
            await engine.send(waiting, "sent while Temporal is down")
        await replace_state(temporal)
        await turns.wait_for_start()  # the other session's turn
        await asyncio.sleep(engine.settings.heartbeat_timeout)  # Temporal has refused a heartbeat of the first one
        turns.release.set()
        ended = [*await engine.wait_for_ended_turns(running, 2), *await engine.wait_for_ended_turns(waiting)]
    assert [(turn.status, turn.attempt) for turn in ended] == [(TurnStatus.COMPLETED, 1)] * 3
    assert turns.attempts == [1, 1, 1]


async def test_an_older_copy_repeats_no_turn(idle_engine: Engine, temporal: Temporal, tmp_path: Path) -> None:
    """The copy was taken during the first turn. The second one runs when the copy is restored."""
    engine, turns = await connect_engine(idle_engine, temporal), BlockedTurns()
    async with engine.worker():
        session_id = await engine.session(turns.run)
        await engine.send(session_id, "one")
        await turns.wait_for_start()
        copy = tmp_path / "copy.db"
        temporal_state.copy_state(temporal, copy)
        turns.release.set()
        await engine.wait_for_ended_turns(session_id)
        turns.release.clear()
        await engine.send(session_id, "two")
        await turns.wait_for_start()
        await replace_state(temporal, copy)
        await asyncio.sleep(
            2 * engine.settings.heartbeat_timeout
        )  # the restored attempt has timed out and was repeated
        turns.release.set()
        await engine.wait_for_ended_turns(session_id, 2)
        await engine.send(session_id, "three")
        ended = await engine.wait_for_ended_turns(session_id, 3)
    assert [(turn.status, turn.attempt) for turn in ended] == [(TurnStatus.COMPLETED, 1)] * 3


async def test_two_activities_that_claim_at_the_same_time_run_the_turn_once(
    idle_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal may start an activity of a session while another one of the same worker is claiming."""
    engine, turns, claimed, claim_turn = idle_engine, BlockedTurns(), asyncio.Event(), Claims.claim

    async def claim_slowly(self: Claims, organisation: str, session_id: str, worker: str) -> Claim | NothingToClaim:
        found = await claim_turn(self, organisation, session_id, worker)
        claimed.set()
        await asyncio.sleep(1)
        return found

    monkeypatch.setattr(Claims, "claim", claim_slowly)
    turns.release.set()
    async with engine.worker():
        session_id = await engine.session(turns.run)
        await engine.send(session_id, "one")
        async with asyncio.timeout(30):
            await claimed.wait()
        # Replaces the workflow, which starts a second activity.
        await engine.waker.end_wait(engine.principal.organisation, session_id)
        ended = await engine.wait_for_ended_turns(session_id)
    assert [(turn.status, turn.attempt) for turn in ended] == [(TurnStatus.COMPLETED, 1)]
    assert turns.attempts == [1]


async def test_only_a_workflow_that_does_nothing_is_replaced(idle_engine: Engine) -> None:
    """After a restored copy, a cached workflow may wait for an activity that Temporal does not know, for ever."""
    engine, turns = idle_engine, BlockedTurns()

    async def run_id() -> str | None:
        name = workflow_id(engine.principal.organisation, session_id)
        return (await engine.client.get_workflow_handle(name).describe()).run_id

    async with engine.worker():
        session_id = await engine.session(turns.run)
        await engine.send(session_id, "one")
        await turns.wait_for_start()
        first = await run_id()
        assert not await engine.waker.wake_overdue(engine.principal.organisation, session_id)
        assert await run_id() == first  # its activity runs
        turns.release.set()
        await engine.wait_for_ended_turns(session_id)
        # False until the workflow has processed the end of the turn.
        assert await wait_until(lambda: engine.waker.wake_overdue(engine.principal.organisation, session_id), 30)
        assert await run_id() != first
        await engine.send(session_id, "two")
        await engine.wait_for_ended_turns(session_id, 2)
