"""The sweep runs even when turns use all of a worker's capacity."""

import asyncio
from dataclasses import replace

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine

from footplate.domain import ids
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions.turns import TurnOutcome
from footplate.stack.orphan_processes import wait_until
from footplate.store.leases.worker_lease_store import WorkerLeases

pytestmark = pytest.mark.timing


async def test_the_sweep_runs_beside_the_maximum_number_of_turns(
    idle_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = idle_engine.settings.model_copy(
        update={"max_turns": 1, "sweep_interval": 1, "task_queue": ids.new_id("queue")}
    )
    engine = replace(idle_engine, settings=settings)
    started: list[str] = []
    release = asyncio.Event()
    sweeps: list[int] = []

    async def forget(_: WorkerLeases) -> None:
        sweeps.append(len(started))

    async def wait(turn: TurnContext) -> TurnOutcome:
        started.append(turn.session_id)
        await release.wait()
        return DONE

    async def full() -> bool:
        return len(started) == 2

    async def swept() -> bool:
        return sweeps.count(2) > 1

    monkeypatch.setattr(WorkerLeases, "delete_stale_rows", forget)
    async with engine.worker():
        sessions = [await engine.session(wait) for _ in range(2)]
        for session_id in sessions:
            await engine.send(session_id, "hi")
        assert await wait_until(full, PATIENCE)
        assert await wait_until(swept, 15)
        release.set()
        for session_id in sessions:
            await engine.wait_for_ended_turns(session_id)
        await engine.client.get_schedule_handle(f"sweep/{settings.task_queue}").delete()
