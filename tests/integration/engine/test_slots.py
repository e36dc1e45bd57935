"""A session is prewarmed on the worker that then runs its first turn, with the configuration of that turn."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine, ScriptedHarness
from tests.integration.store.cell import message

from footplate.domain.ports import Ahead, Kept, TurnContext
from footplate.domain.turns import Outcome
from footplate.stack.leftovers import wait_until

pytestmark = pytest.mark.timing


@dataclass(slots=True)
class Waiting:
    """A process that the harness has prewarmed."""

    closed: bool = False

    @property
    def alive(self) -> bool:
        return not self.closed

    async def aclose(self) -> None:
        self.closed = True


@dataclass(slots=True)
class Preparing(ScriptedHarness):
    ready: dict[str, Waiting] = field(default_factory=dict)

    async def prepare(self, ahead: Ahead) -> Kept:
        await ahead.environment.write("seen", b"")
        return self.ready.setdefault(ahead.session_id, Waiting())


def _engine(idle: Engine, harness: Preparing) -> Engine:
    """Returns an engine whose workflows stay open during the test."""
    return replace(idle, harness=harness, settings=idle.settings.model_copy(update={"linger": 30.0}))


async def _prepared(engine: Engine, harness: Preparing, session_id: str) -> Waiting:
    await engine.waker.prepare(engine.principal.organisation, session_id)

    async def ready() -> bool:
        return session_id in harness.ready

    assert await wait_until(ready, PATIENCE)
    await asyncio.sleep(0.1)
    return harness.ready[session_id]


async def test_the_first_turn_finds_it(idle_engine: Engine) -> None:
    harness = Preparing()
    engine = _engine(idle_engine, harness)
    found: list[object] = []

    async def look(turn: TurnContext) -> Outcome:
        found.append(turn.kept)
        found.append(await turn.environment.read("seen"))
        return DONE

    async with engine.worker():
        session_id = await engine.session(look)
        waiting = await _prepared(engine, harness, session_id)
        await engine.send(session_id, "hi")
        await engine.ended(session_id)
        assert found == [waiting, b""]


async def test_a_turn_of_another_kind_does_not(idle_engine: Engine) -> None:
    harness = Preparing()
    engine = _engine(idle_engine, harness)
    found: list[object] = []

    async def look(turn: TurnContext) -> Outcome:
        found.append(turn.kept)
        return DONE

    async with engine.worker():
        session_id = await engine.session(look)
        waiting = await _prepared(engine, harness, session_id)
        await engine.send(session_id, replace(message("hi"), overrides={"model": "claude-haiku-5"}))
        await engine.ended(session_id)
    assert (found, waiting.closed) == ([None], True)


async def test_of_several_workers_it_is_the_one_that_gets_the_turn(idle_engine: Engine) -> None:
    harness = Preparing()
    engine = _engine(idle_engine, harness)
    found: Counter[bool] = Counter()

    async def look(turn: TurnContext) -> Outcome:
        found[turn.kept is not None] += 1
        return DONE

    async with engine.worker(), engine.worker(), engine.worker():
        for _ in range(12):
            session_id = await engine.session(look)
            await _prepared(engine, harness, session_id)
            await engine.send(session_id, "hi")
            await engine.ended(session_id)
    # By chance it would be a third of the turns.
    assert found[True] >= 10, found
