"""A prewarmed harness starts if there is room, waits without model access, and is used only by its own session."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from tests.unit.engine.fake_resources import CLAIM, CONFIG, FakeResourceFactory

from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import UpcomingTurn, WarmProcess
from footplate.domain.projects.project import BaseCommit, SessionProject
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.warm.prewarming import Prewarmer
from footplate.engine.warm.warm_pool import WarmPool

pytestmark = pytest.mark.timing


@dataclass
class FakeWorker:
    """A worker with fake resources. Harnesses wait for `connected`."""

    opened: FakeResourceFactory = field(default_factory=FakeResourceFactory)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    prepared_sessions: list[str] = field(default_factory=list)
    predictions: dict[str, Claim] = field(default_factory=dict)
    projects: tuple[SessionProject, ...] = ()
    has_no_turn: bool = False
    fails: bool = False

    def make_prewarmer(self, *, max_count: int = 2, seconds: float = 60.0) -> Prewarmer:
        return Prewarmer(
            WarmPool(max_processes=max_count, max_idle_seconds=seconds, deadline=lambda: 7.0),
            claims=cast("Any", self),
            conversations=ConversationCache(cast("TurnStore", None), max_bytes=1 << 20, max_idle_seconds=300),
            environments=cast("Any", self.opened),
            models=cast("Any", self.opened),
            harness=lambda _: cast("Any", self),
            deadline=lambda: 7.0,
        )

    async def predict_next_turn(self, organisation: str, session_id: str) -> Claim | None:
        assert organisation == "org"
        config = replace(CLAIM.config, projects=self.projects)
        return None if self.has_no_turn else replace(CLAIM, session_id=session_id, turn_id="", config=config)

    async def prepare(self, upcoming: UpcomingTurn) -> WarmProcess | None:
        self.prepared_sessions.append(upcoming.session_id)
        await self.connected.wait()
        if self.fails:
            raise OSError("no such program")
        return cast("WarmProcess", upcoming.environment)


async def _until(reached: Any) -> None:
    async with asyncio.timeout(30):
        while not reached():  # noqa: ASYNC110 - the condition is in memory
            await asyncio.sleep(0.01)


async def test_the_first_turn_gets_the_prewarmed_harness_and_model_access_is_paused_meanwhile() -> None:
    desk = FakeWorker()
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_1")
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.prepared_sessions == ["sesn_1"])
    desk.connected.set()
    await asyncio.sleep(0.05)
    assert desk.opened.resources[0].calls == ["paused", "renewed to 7", "paused"]
    found = await slots.acquire(CLAIM)
    assert found is not None
    assert found.warm_process is desk.opened.resources[0]
    assert await slots.acquire(CLAIM) is None


async def test_nothing_is_prewarmed_before_the_tree_of_a_project_exists() -> None:
    desk = FakeWorker(projects=(SessionProject(id="proj_1", name="one"),))
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_1")
    await asyncio.sleep(0.05)
    desk.projects = (SessionProject(id="proj_1", name="one", base=BaseCommit("c0ffee", "main", "one")),)
    slots.prepare("org", "sesn_2")
    await _until(lambda: desk.prepared_sessions == ["sesn_2"])
    assert len(desk.opened.resources) == 1
    desk.connected.set()


async def test_a_turn_waits_for_a_harness_that_is_connecting() -> None:
    desk = FakeWorker()
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.prepared_sessions)
    taking = asyncio.create_task(slots.acquire(CLAIM))
    await asyncio.sleep(0.05)
    assert not taking.done()
    desk.connected.set()
    assert await taking is not None


async def test_a_turn_does_not_wait_for_a_queued_harness() -> None:
    desk = FakeWorker()
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_0")
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.prepared_sessions)
    assert await slots.acquire(CLAIM) is None
    desk.connected.set()
    assert await slots.acquire(replace(CLAIM, session_id="sesn_0")) is not None
    assert desk.prepared_sessions == ["sesn_0"]


@pytest.mark.parametrize(
    "changed",
    [{"entries": 1}, {"attempt": 2}, {"config": replace(CONFIG, model="claude-opus-5")}, {"context": {"a": 1}}],
)
async def test_a_harness_that_does_not_match_is_closed(changed: dict[str, Any]) -> None:
    desk = FakeWorker()
    desk.connected.set()
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_1")
    assert await slots.acquire(replace(CLAIM, **changed)) is None
    assert all(part.closed for part in desk.opened.resources)


async def test_number_and_age_are_limited() -> None:
    desk = FakeWorker()
    desk.connected.set()
    slots = desk.make_prewarmer(seconds=0.6)
    async with slots.running():
        for number in range(4):
            slots.prepare("org", f"sesn_{number}")
        await _until(lambda: len(desk.prepared_sessions) == 2)
        slots.prepare("org", "sesn_5")
        await asyncio.sleep(0.05)
        assert desk.prepared_sessions == ["sesn_0", "sesn_1"]
        await _until(lambda: all(part.closed for part in desk.opened.resources))
        slots.prepare("org", "sesn_5")
        await _until(lambda: desk.prepared_sessions[2:] == ["sesn_5"])


async def test_nothing_is_prewarmed_if_disabled_or_if_the_session_has_started() -> None:
    for desk, max_count in ((FakeWorker(), 0), (FakeWorker(has_no_turn=True), 1)):
        desk.connected.set()
        slots = desk.make_prewarmer(max_count=max_count)
        slots.prepare("org", "sesn_1")
        assert await slots.acquire(CLAIM) is None
        assert not desk.opened.resources


async def test_a_failed_start_closes_everything() -> None:
    desk = FakeWorker(fails=True)
    desk.connected.set()
    slots = desk.make_prewarmer()
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.prepared_sessions and desk.opened.resources[0].closed)
    assert await slots.acquire(CLAIM) is None


async def test_a_stopping_worker_closes_everything() -> None:
    desk = FakeWorker()
    slots = desk.make_prewarmer()
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(slots.running())
        slots.prepare("org", "sesn_0")
        slots.prepare("org", "sesn_1")
        await _until(lambda: desk.prepared_sessions)
        desk.connected.set()
        await _until(lambda: len(desk.prepared_sessions) == 2)
        desk.connected.clear()
    assert [part.closed for part in desk.opened.resources] == [True, True]
