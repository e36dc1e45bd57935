"""A warm harness is used only by its own session, and only if nothing changed between the turns."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.engine.fake_resources import CLAIM, CONFIG, FakeResource, make_resources

from footplate.engine.warm.warm_pool import WarmPool

pytestmark = pytest.mark.timing


def make_pool(**options: Any) -> WarmPool:
    given: dict[str, Any] = {"max_processes": 2, "max_idle_seconds": 60, "deadline": lambda: 7.0, **options}
    return WarmPool(**given)


async def test_the_next_turn_gets_the_warm_harness_and_model_access_is_paused_meanwhile() -> None:
    harnesses, part = make_pool(), FakeResource()
    mine = make_resources(part)
    harnesses.add(CLAIM, 5, mine)
    assert part.calls == ["paused"]
    assert await harnesses.acquire(replace(CLAIM, turn_id="turn_2", epoch=9, entries=5)) is mine
    assert await harnesses.acquire(replace(CLAIM, turn_id="turn_3", entries=5)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"entries": 6},
        {"entries": 5, "attempt": 2},
        {"entries": 5, "config": replace(CONFIG, model="claude-opus-5")},
        {"entries": 5, "context": {"a": 1}},
    ],
)
async def test_a_harness_that_does_not_match_is_closed(changed: dict[str, Any]) -> None:
    harnesses, part = make_pool(), FakeResource()
    harnesses.add(CLAIM, 5, make_resources(part))
    assert await harnesses.acquire(replace(CLAIM, **changed)) is None
    assert "closed" in part.calls


async def test_another_session_never_gets_a_warm_harness() -> None:
    harnesses = make_pool()
    harnesses.add(CLAIM, 5, make_resources(FakeResource()))
    assert await harnesses.acquire(replace(CLAIM, session_id="sesn_2", entries=5)) is None


async def test_the_oldest_is_closed_at_the_limit_and_a_dead_one_soon() -> None:
    harnesses, parts = make_pool(max_idle_seconds=60), [FakeResource(), FakeResource(), FakeResource()]
    async with harnesses.running():
        for number, part in enumerate(parts):
            harnesses.add(replace(CLAIM, session_id=f"sesn_{number}"), 5, make_resources(part))
        await asyncio.sleep(0)
        assert ["closed" in part.calls for part in parts] == [True, False, False]
        parts[1].alive = False
        await _until_called(parts[1], "closed")
        await _until_called(parts[2], "renewed to 7")
        assert "closed" not in parts[2].calls


async def test_a_harness_that_waits_too_long_is_closed() -> None:
    harnesses, part = make_pool(max_idle_seconds=0.6), FakeResource()
    async with harnesses.running():
        harnesses.add(CLAIM, 5, make_resources(part))
        await _until_called(part, "closed")


async def _until_called(part: FakeResource, call: str) -> None:
    async with asyncio.timeout(30):
        while call not in part.calls:  # noqa: ASYNC110 - another task makes the call
            await asyncio.sleep(0.01)


async def test_a_stopping_worker_closes_every_harness() -> None:
    harnesses, part = make_pool(), FakeResource()
    async with harnesses.running():
        harnesses.add(CLAIM, 5, make_resources(part))
    assert "closed" in part.calls


async def test_a_turn_waits_until_the_closing_harness_is_dead() -> None:
    harnesses, dying = make_pool(), SlowResource()
    harnesses.add(CLAIM, 5, make_resources(dying))
    harnesses.add(CLAIM, 5, make_resources(FakeResource()))
    taking = asyncio.create_task(harnesses.acquire(replace(CLAIM, entries=5)))
    await asyncio.sleep(0.05)
    assert not taking.done()
    dying.may_die.set()
    found = await taking
    assert found is not None
    assert dying.closed


class SlowResource(FakeResource):
    def __init__(self) -> None:
        super().__init__()
        self.may_die = asyncio.Event()

    async def aclose(self) -> None:
        await self.may_die.wait()
        await super().aclose()
