"""An interrupt reaches its turn, even if it arrives before the turn listens."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import cast

from footplate.domain.ports.engine import Claim, LiveTurn, Nudges, TurnStore
from footplate.engine.turn.interrupts_and_steering import ControlInputs
from footplate.engine.worker_lease import HeldTurn

from .test_file_snapshots import CLAIM


class Interrupted:
    """A fake log, publisher and nudges of a turn that has an interrupt."""

    async def claim_interrupts(self, _: Claim) -> tuple[bool, Sequence[object]]:
        return True, ()

    async def publish(self, _: object) -> None:
        pass

    def watch(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()


async def test_an_interrupt_found_by_a_renewal_before_the_turn_listens_is_handled() -> None:
    claim = replace(CLAIM, attempt=1, control_seq=0, controls_seq=5)
    given = Interrupted()
    controls = ControlInputs(cast("TurnStore", given), cast("Nudges", given), claim, cast("LiveTurn", given))
    held = HeldTurn(claim, deadline=float("inf"), control_seq=7)
    async with controls.watching(held):
        await asyncio.wait_for(controls.interrupt.wait(), 30)


async def test_an_interrupt_of_a_waiting_turn_is_known_before_the_harness_starts() -> None:
    for claim, is_interrupted in (
        (replace(CLAIM, attempt=1, control_seq=7, controls_seq=5), True),
        (replace(CLAIM, attempt=2, control_seq=7, controls_seq=5), True),
        (replace(CLAIM, attempt=2, control_seq=4, controls_seq=5), False),
    ):
        given = Interrupted()
        controls = ControlInputs(cast("TurnStore", given), cast("Nudges", given), claim, cast("LiveTurn", given))
        await controls.check_earlier_interrupts()
        assert controls.interrupt.is_set() is is_interrupted
