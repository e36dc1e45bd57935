"""What is kept between turns is used by its own session alone, and only if nothing happened in between."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from footplate.domain.agents import ResolvedConfig
from footplate.domain.running import Claim, ModelGrant, OpenEnvironment
from footplate.engine.kept import KeptHarnesses, Lodging

CONFIG = ResolvedConfig(harness="claude", model="claude-sonnet-5", system="")
CLAIM = Claim(
    organisation="org", session_id="sesn_1", epoch=1, turn_id="turn_1", attempt=1, failures=0, first_seq=1,
    control_seq=0, controls_seq=0, config=CONFIG, content=[], context={}, entries=0,
)  # fmt: skip


@dataclass
class Part:
    """Stands for an environment, a leave to ask models and a harness at once."""

    alive: bool = True
    said: list[str] = field(default_factory=list)

    def renew(self, deadline: float) -> None:
        self.said.append(f"renewed to {deadline:g}")

    def pause(self) -> None:
        self.said.append("paused")

    async def aclose(self) -> None:
        self.said.append("closed")


def lodging(part: Part) -> Lodging:
    return Lodging(cast("OpenEnvironment", part), cast("ModelGrant", part), part)


def kept(**given: Any) -> KeptHarnesses:
    return KeptHarnesses(**{"most": 2, "seconds": 60, "deadline": lambda: 7.0, **given})


async def test_the_next_turn_gets_it_and_nothing_may_be_asked_meanwhile() -> None:
    harnesses, part = kept(), Part()
    mine = lodging(part)
    await harnesses.put(CLAIM, 5, mine)
    assert part.said == ["paused"]
    assert await harnesses.take(replace(CLAIM, turn_id="turn_2", epoch=9, entries=5)) is mine
    assert await harnesses.take(replace(CLAIM, turn_id="turn_3", entries=5)) is None


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
    await harnesses.put(CLAIM, 5, lodging(part))
    assert await harnesses.take(replace(CLAIM, **changed)) is None
    assert "closed" in part.said


async def test_another_session_never_gets_it() -> None:
    harnesses = kept()
    await harnesses.put(CLAIM, 5, lodging(Part()))
    assert await harnesses.take(replace(CLAIM, session_id="sesn_2", entries=5)) is None


async def test_bounds_of_number_and_time() -> None:
    harnesses, parts = kept(seconds=0.6), [Part(), Part(), Part()]
    async with harnesses.running():
        for number, part in enumerate(parts):
            await harnesses.put(replace(CLAIM, session_id=f"sesn_{number}"), 5, lodging(part))
        assert ["closed" in part.said for part in parts] == [True, False, False]
        parts[1].alive = False
        await asyncio.sleep(0.55)
        assert ["closed" in part.said for part in parts] == [True, True, False]
        assert "renewed to 7" in parts[2].said
        await asyncio.sleep(0.6)
        assert "closed" in parts[2].said


async def test_a_worker_that_stops_leaves_nothing() -> None:
    harnesses, part = kept(), Part()
    async with harnesses.running():
        await harnesses.put(CLAIM, 5, lodging(part))
    assert "closed" in part.said
