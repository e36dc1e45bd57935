"""A session is prewarmed on the worker that then runs its first turn, with the configuration of that turn."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine, ScriptedHarness
from tests.integration.store.cell import message

from footplate.domain.ports.harness import TurnContext, UpcomingTurn, WarmProcess
from footplate.domain.sessions.turns import TurnOutcome
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing


@dataclass(slots=True)
class PrewarmedProcess:
    """A process that the harness has prewarmed."""

    closed: bool = False

    @property
    def alive(self) -> bool:
        return not self.closed

    async def aclose(self) -> None:
        self.closed = True


@dataclass(slots=True)
class PrewarmingHarness(ScriptedHarness):
    ready: dict[str, PrewarmedProcess] = field(default_factory=dict)

    async def prepare(self, ahead: UpcomingTurn) -> WarmProcess:
        await ahead.environment.write("seen", b"")
        return self.ready.setdefault(ahead.session_id, PrewarmedProcess())


def _with_prewarming(idle: Engine, harness: PrewarmingHarness) -> Engine:
    """Returns an engine whose workflows stay open during the test."""
    return replace(idle, harness=harness, settings=idle.settings.model_copy(update={"linger": 30.0}))


async def _prewarm(engine: Engine, harness: PrewarmingHarness, session_id: str) -> PrewarmedProcess:
    await engine.waker.prepare(engine.principal.organisation, session_id)

    async def ready() -> bool:
        return session_id in harness.ready

    assert await wait_until(ready, PATIENCE)
    await asyncio.sleep(0.1)
    return harness.ready[session_id]


async def test_the_first_turn_uses_the_prewarmed_process(idle_engine: Engine) -> None:
    harness = PrewarmingHarness()
    engine = _with_prewarming(idle_engine, harness)
    found: list[object] = []

    async def record_process(turn: TurnContext) -> TurnOutcome:
        found.append(turn.warm_process)
        found.append(await turn.environment.read("seen"))
        return DONE

    async with engine.worker():
        session_id = await engine.session(record_process)
        waiting = await _prewarm(engine, harness, session_id)
        await engine.send(session_id, "hi")
        await engine.wait_for_ended_turns(session_id)
        assert found == [waiting, b""]


async def test_a_turn_with_another_model_does_not_use_the_prewarmed_process(idle_engine: Engine) -> None:
    harness = PrewarmingHarness()
    engine = _with_prewarming(idle_engine, harness)
    found: list[object] = []

    async def record_process(turn: TurnContext) -> TurnOutcome:
        found.append(turn.warm_process)
        return DONE

    async with engine.worker():
        session_id = await engine.session(record_process)
        waiting = await _prewarm(engine, harness, session_id)
        await engine.send(session_id, replace(message("hi"), overrides={"model": "claude-haiku-5"}))
        await engine.wait_for_ended_turns(session_id)
    assert (found, waiting.closed) == ([None], True)


async def test_the_prewarmed_worker_receives_the_turn(idle_engine: Engine) -> None:
    harness = PrewarmingHarness()
    engine = _with_prewarming(idle_engine, harness)
    found: Counter[bool] = Counter()

    async def record_process(turn: TurnContext) -> TurnOutcome:
        found[turn.warm_process is not None] += 1
        return DONE

    async with engine.worker(), engine.worker(), engine.worker():
        for _ in range(12):
            session_id = await engine.session(record_process)
            await _prewarm(engine, harness, session_id)
            await engine.send(session_id, "hi")
            await engine.wait_for_ended_turns(session_id)
    # By chance it would be a third of the turns.
    assert found[True] >= 10, found
