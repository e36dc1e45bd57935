"""A warm harness is used only by its own session, and only if nothing changed between the turns."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.engine.parts import CLAIM, CONFIG, Part, lodging

from footplate.engine.kept import WarmPool

pytestmark = pytest.mark.timing


def kept(**given: Any) -> WarmPool:
    return WarmPool(**{"most": 2, "seconds": 60, "deadline": lambda: 7.0, **given})


async def test_the_next_turn_gets_it_and_nothing_may_be_asked_meanwhile() -> None:
    harnesses, part = kept(), Part()
    mine = lodging(part)
    harnesses.add(CLAIM, 5, mine)
    assert part.said == ["paused"]
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
async def test_one_that_does_not_fit_is_ended(changed: dict[str, Any]) -> None:
    harnesses, part = kept(), Part()
    harnesses.add(CLAIM, 5, lodging(part))
    assert await harnesses.acquire(replace(CLAIM, **changed)) is None
    assert "closed" in part.said


async def test_another_session_never_gets_it() -> None:
    harnesses = kept()
    harnesses.add(CLAIM, 5, lodging(Part()))
    assert await harnesses.acquire(replace(CLAIM, session_id="sesn_2", entries=5)) is None


async def test_the_oldest_goes_when_there_are_too_many_and_a_dead_one_soon() -> None:
    harnesses, parts = kept(seconds=60), [Part(), Part(), Part()]
    async with harnesses.running():
        for number, part in enumerate(parts):
            harnesses.add(replace(CLAIM, session_id=f"sesn_{number}"), 5, lodging(part))
        await asyncio.sleep(0)
        assert ["closed" in part.said for part in parts] == [True, False, False]
        parts[1].alive = False
        await _until_said(parts[1], "closed")
        await _until_said(parts[2], "renewed to 7")
        assert "closed" not in parts[2].said


async def test_what_waits_too_long_goes() -> None:
    harnesses, part = kept(seconds=0.6), Part()
    async with harnesses.running():
        harnesses.add(CLAIM, 5, lodging(part))
        await _until_said(part, "closed")


async def _until_said(part: Part, what: str) -> None:
    async with asyncio.timeout(30):
        while what not in part.said:  # noqa: ASYNC110 - another task makes the call
            await asyncio.sleep(0.01)


async def test_a_worker_that_stops_leaves_nothing() -> None:
    harnesses, part = kept(), Part()
    async with harnesses.running():
        harnesses.add(CLAIM, 5, lodging(part))
    assert "closed" in part.said


async def test_a_turn_waits_until_what_is_being_ended_is_dead() -> None:
    harnesses, dying = kept(), Slow()
    harnesses.add(CLAIM, 5, lodging(dying))
    harnesses.add(CLAIM, 5, lodging(Part()))
    taking = asyncio.create_task(harnesses.acquire(replace(CLAIM, entries=5)))
    await asyncio.sleep(0.05)
    assert not taking.done()
    dying.may_die.set()
    found = await taking
    assert found is not None
    assert dying.closed


class Slow(Part):
    def __init__(self) -> None:
        super().__init__()
        self.may_die = asyncio.Event()

    async def aclose(self) -> None:
        await self.may_die.wait()
        await super().aclose()
