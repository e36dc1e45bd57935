"""A prewarmed harness starts if there is room, waits without model access, and is used only by its own session."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from tests.unit.engine.parts import CLAIM, CONFIG, Opened, Part

from footplate.domain.ports import UpcomingTurn, WarmProcess
from footplate.domain.projects import BaseCommit, SessionProject
from footplate.domain.running import Claim, TurnStore
from footplate.engine.conversations import ConversationCache
from footplate.engine.kept import WarmPool
from footplate.engine.slots import Prewarmer

pytestmark = pytest.mark.timing


@dataclass
class Desk:
    """A worker with fake resources. Harnesses wait for `connected`."""

    opened: Opened = field(default_factory=Opened)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    outlooks: dict[str, Claim] = field(default_factory=dict)
    projects: tuple[SessionProject, ...] = ()
    nothing: bool = False
    breaks: bool = False

    def slots(self, *, most: int = 2, seconds: float = 60.0) -> Prewarmer:
        return Prewarmer(
            WarmPool(max_processes=most, max_idle_seconds=seconds, deadline=lambda: 7.0),
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
        return None if self.nothing else replace(CLAIM, session_id=session_id, turn_id="", config=config)

    async def prepare(self, ahead: UpcomingTurn) -> WarmProcess | None:
        self.asked.append(ahead.session_id)
        await self.connected.wait()
        if self.breaks:
            raise OSError("no such program")
        return cast("Part", ahead.environment)


async def _until(reached: Any) -> None:
    async with asyncio.timeout(30):
        while not reached():  # noqa: ASYNC110 - the condition is in memory
            await asyncio.sleep(0.01)


async def test_the_first_turn_gets_it_and_nothing_may_be_asked_meanwhile() -> None:
    desk = Desk()
    slots = desk.slots()
    slots.prepare("org", "sesn_1")
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.asked == ["sesn_1"])
    desk.connected.set()
    await asyncio.sleep(0.05)
    assert desk.opened.parts[0].said == ["paused", "renewed to 7", "paused"]
    found = await slots.acquire(CLAIM)
    assert found is not None
    assert found.warm_process is desk.opened.parts[0]
    assert await slots.acquire(CLAIM) is None


async def test_there_is_none_before_the_tree_of_a_project() -> None:
    desk = Desk(projects=(SessionProject(id="proj_1", name="one"),))
    slots = desk.slots()
    slots.prepare("org", "sesn_1")
    await asyncio.sleep(0.05)
    desk.projects = (SessionProject(id="proj_1", name="one", base=BaseCommit("c0ffee", "main", "one")),)
    slots.prepare("org", "sesn_2")
    await _until(lambda: desk.asked == ["sesn_2"])
    assert len(desk.opened.parts) == 1
    desk.connected.set()


async def test_a_turn_waits_for_one_that_is_being_connected() -> None:
    desk = Desk()
    slots = desk.slots()
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.asked)
    taking = asyncio.create_task(slots.acquire(CLAIM))
    await asyncio.sleep(0.05)
    assert not taking.done()
    desk.connected.set()
    assert await taking is not None


async def test_a_turn_does_not_wait_for_one_that_waits_itself() -> None:
    desk = Desk()
    slots = desk.slots()
    slots.prepare("org", "sesn_0")
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.asked)
    assert await slots.acquire(CLAIM) is None
    desk.connected.set()
    assert await slots.acquire(replace(CLAIM, session_id="sesn_0")) is not None
    assert desk.asked == ["sesn_0"]


@pytest.mark.parametrize(
    "changed",
    [{"entries": 1}, {"attempt": 2}, {"config": replace(CONFIG, model="claude-opus-5")}, {"context": {"a": 1}}],
)
async def test_one_that_does_not_fit_is_ended(changed: dict[str, Any]) -> None:
    desk = Desk()
    desk.connected.set()
    slots = desk.slots()
    slots.prepare("org", "sesn_1")
    assert await slots.acquire(replace(CLAIM, **changed)) is None
    assert all(part.closed for part in desk.opened.parts)


async def test_bounds_of_number_and_time() -> None:
    desk = Desk()
    desk.connected.set()
    slots = desk.slots(seconds=0.6)
    async with slots.running():
        for number in range(4):
            slots.prepare("org", f"sesn_{number}")
        await _until(lambda: len(desk.asked) == 2)
        slots.prepare("org", "sesn_5")
        await asyncio.sleep(0.05)
        assert desk.asked == ["sesn_0", "sesn_1"]
        await _until(lambda: all(part.closed for part in desk.opened.parts))
        slots.prepare("org", "sesn_5")
        await _until(lambda: desk.asked[2:] == ["sesn_5"])


async def test_none_is_made_where_the_operator_wants_none_or_the_session_has_begun() -> None:
    for desk, most in ((Desk(), 0), (Desk(nothing=True), 1)):
        desk.connected.set()
        slots = desk.slots(most=most)
        slots.prepare("org", "sesn_1")
        assert await slots.acquire(CLAIM) is None
        assert not desk.opened.parts


async def test_one_that_cannot_be_made_leaves_nothing() -> None:
    desk = Desk(breaks=True)
    desk.connected.set()
    slots = desk.slots()
    slots.prepare("org", "sesn_1")
    await _until(lambda: desk.asked and desk.opened.parts[0].closed)
    assert await slots.acquire(CLAIM) is None


async def test_a_worker_that_stops_leaves_nothing() -> None:
    desk = Desk()
    slots = desk.slots()
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(slots.running())
        slots.prepare("org", "sesn_0")
        slots.prepare("org", "sesn_1")
        await _until(lambda: desk.asked)
        desk.connected.set()
        await _until(lambda: len(desk.asked) == 2)
        desk.connected.clear()
    assert [part.closed for part in desk.opened.parts] == [True, True]
