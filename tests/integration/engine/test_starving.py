"""The sweep runs even when turns use all of a worker's capacity."""

import asyncio
from dataclasses import replace

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine

from footplate.domain import ids
from footplate.domain.ports import TurnContext
from footplate.domain.turns import Outcome
from footplate.stack.leftovers import wait_until
from footplate.store.leases import Leases

pytestmark = pytest.mark.timing


async def test_the_sweep_runs_beside_as_many_turns_as_there_may_be(
    idle_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = idle_engine.settings.model_copy(
        update={"max_turns": 1, "sweep_interval": 1, "task_queue": ids.new_id("queue")}
    )
    engine = replace(idle_engine, settings=settings)
    begun: list[str] = []
    release = asyncio.Event()
    sweeps: list[int] = []

    async def forget(_: Leases) -> None:
        sweeps.append(len(begun))

    async def wait(turn: TurnContext) -> Outcome:
        begun.append(turn.session_id)
        await release.wait()
        return DONE

    async def full() -> bool:
        return len(begun) == 2

    async def swept() -> bool:
        return sweeps.count(2) > 1

    monkeypatch.setattr(Leases, "forget", forget)
    async with engine.worker():
        sessions = [await engine.session(wait) for _ in range(2)]
        for session_id in sessions:
            await engine.send(session_id, "hi")
        assert await wait_until(full, PATIENCE)
        assert await wait_until(swept, 15)
        release.set()
        for session_id in sessions:
            await engine.ended(session_id)
        await engine.client.get_schedule_handle(f"sweep/{settings.task_queue}").delete()
