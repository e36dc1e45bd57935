"""Who works in a directory that a user named is alone there, and nobody else waits for anything."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from footplate.domain.agents import ResolvedConfig
from footplate.domain.leases import HeldLease
from footplate.domain.running import Claim
from footplate.engine.writing import alone

from .test_files import CLAIM


@dataclass
class Leases:
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    held_now: int = 0

    @asynccontextmanager
    async def held(
        self,
        organisation: str,
        place: str,
        *,
        who: str,
        wait: float = 300,
        named: str | None = None,
        successor: bool = False,
    ) -> AsyncIterator[HeldLease]:
        assert (organisation, wait, successor) == ("org", 300, True)
        self.asked.append((place.partition(":")[2], who, named or ""))
        self.held_now += 1
        try:
            yield cast("HeldLease", None)
        finally:
            self.held_now -= 1


def claim(projects: tuple[str, ...] = (), **context: Any) -> Claim:
    config = cast("ResolvedConfig", type("Config", (), {"projects": projects})())
    return replace(CLAIM, config=config, context=context)


async def test_a_named_directory_is_one_turns_at_a_time() -> None:
    leases = Leases()
    async with alone(leases, claim(directory="/home/ann/app/")):
        assert leases.held_now == 1
    assert leases.held_now == 0
    assert leases.asked == [("/home/ann/app", "a turn of session sesn_1", "the directory /home/ann/app/")]


async def test_others_wait_for_nobody() -> None:
    leases = Leases()
    for other in (claim(), claim(directory=7), claim(("proj_1",), directory="/home/ann/app")):
        async with alone(leases, other):
            assert leases.held_now == 0
    async with alone(None, claim(directory="/home/ann/app")):
        pass
    assert leases.asked == []
