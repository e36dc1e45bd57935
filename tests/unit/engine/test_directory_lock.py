"""A turn has exclusive access to a user-specified directory. Other turns wait for no lock."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.errors import Fenced
from footplate.domain.ports.engine import Claim, LiveTurn, Nudges, TurnStore
from footplate.domain.projects.write_leases import HeldLease
from footplate.engine.turn.directory_lock import exclusive_directory
from footplate.engine.turn.interrupts_and_steering import ControlInputs
from footplate.engine.worker_lease import HeldTurn

from .test_file_snapshots import CLAIM


@dataclass
class FakeLeases:
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    held_now: int = 0
    busy: bool = False
    """Another turn holds the lease for the whole test."""
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def hold(
        self,
        organisation: str,
        target: str,
        *,
        owner: str,
        wait: float = 300,
        display_name: str | None = None,
        successor: bool = False,
    ) -> AsyncIterator[HeldLease]:
        assert (organisation, wait, successor) == ("org", 300, True)
        self.requests.append((target.partition(":")[2], owner, display_name or ""))
        if self.busy:
            self.waiting.set()
            await asyncio.Event().wait()
        self.held_now += 1
        try:
            yield cast("HeldLease", None)
        finally:
            self.held_now -= 1


def make_claim(projects: tuple[str, ...] = (), **context: Any) -> Claim:
    config = cast("ResolvedConfig", type("Config", (), {"projects": projects})())
    return replace(CLAIM, config=config, context=context)


class Inputs:
    """A fake log, publisher and nudges of a turn. A test sets `interrupted`."""

    interrupted = False

    async def claim_interrupts(self, _: Claim) -> tuple[bool, Sequence[object]]:
        return self.interrupted, ()

    async def publish(self, _: object) -> None:
        pass

    def watch(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()


def held_turn(of: Claim) -> HeldTurn:
    return HeldTurn(of, deadline=float("inf"))


def lock_directory(
    leases: FakeLeases | None, of: Claim, inputs: Inputs | None = None, held: HeldTurn | None = None
) -> AbstractAsyncContextManager[bool]:
    given = inputs or Inputs()
    controls = ControlInputs(cast("TurnStore", given), cast("Nudges", given), of, cast("LiveTurn", given))
    return exclusive_directory(leases, of, controls, held or held_turn(of))


@pytest.mark.requirement("C2")
async def test_a_directory_is_locked_for_one_turn_at_a_time() -> None:
    leases = FakeLeases()
    async with lock_directory(leases, make_claim(directory="/home/ann/app/")) as begins:
        assert (begins, leases.held_now) == (True, 1)
    assert leases.held_now == 0
    assert leases.requests == [("/home/ann/app", "a turn of session sesn_1", "the directory /home/ann/app/")]


async def test_turns_without_a_user_specified_directory_take_no_lock() -> None:
    leases = FakeLeases()
    for other in (make_claim(), make_claim(directory=7), make_claim(("proj_1",), directory="/home/ann/app")):
        async with lock_directory(leases, other) as begins:
            assert (begins, leases.held_now) == (True, 0)
    async with lock_directory(None, make_claim(directory="/home/ann/app")) as begins:
        assert begins
    assert leases.requests == []


async def test_a_waiting_turn_handles_an_interrupt() -> None:
    leases, inputs, mine = FakeLeases(busy=True), Inputs(), make_claim(directory="/home/ann/app")
    held = held_turn(mine)

    async def turn() -> bool:
        async with lock_directory(leases, mine, inputs, held) as begins:
            return begins

    waits = asyncio.create_task(turn())
    await leases.waiting.wait()
    inputs.interrupted = True
    held.on_control()
    assert await asyncio.wait_for(waits, 10) is False
    assert leases.held_now == 0


async def test_a_lost_turn_stops_waiting() -> None:
    leases, mine = FakeLeases(busy=True), make_claim(directory="/home/ann/app")
    held = held_turn(mine)

    async def turn() -> None:
        async with lock_directory(leases, mine, held=held):
            raise AssertionError

    waits = asyncio.create_task(turn())
    await leases.waiting.wait()
    held.mark_lost()
    with pytest.raises(Fenced):
        await asyncio.wait_for(waits, 10)
