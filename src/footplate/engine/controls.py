"""Control inputs of a running turn: interrupts, and messages that join it.

They are checked on every nudge, and at lease renewal in case a nudge was lost.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports import SteerMessage
from footplate.domain.running import Claim, LiveTurn, Nudges, TurnStore
from footplate.engine.leases import HeldTurn

log = structlog.get_logger(__name__)


class Controls:
    def __init__(self, turns: TurnStore, nudges: Nudges, claim: Claim, live: LiveTurn) -> None:
        self._turns = turns
        self._nudges = nudges
        self._claim = claim
        self._live = live
        self._look = asyncio.Event()
        self._steer = False
        self.interrupt = asyncio.Event()
        """Set when the turn is interrupted."""

    @asynccontextmanager
    async def heeded(self, held_turn: HeldTurn) -> AsyncGenerator[None, None]:
        held_turn.on_control = self._controlled
        # A lease renewal may have found a control input before this callback was set.
        if self._claim.attempt > 1 or held_turn.control_seq >= self._claim.controls_seq:
            self._controlled()
        watcher = asyncio.create_task(self._watch())
        try:
            with self._nudges.watch(self._claim.session_id, self._controlled):
                yield
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def take_steering(self) -> Sequence[SteerMessage]:
        if not self._steer:
            return ()
        self._steer = False
        messages, positions = await self._turns.take_steering(self._claim)
        await self._live.publish(positions)
        return messages

    def _controlled(self) -> None:
        """Schedule a check for interrupts now, and for steering messages at the harness's next safe point."""
        self._steer = True
        self._look.set()

    async def _watch(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                is_interrupted, positions = await self._turns.take_interrupts(self._claim)
            except FootplateError as error:
                log.warning("interrupts could not be read", action="turn.controls_failed", reason=error.message)
                await asyncio.sleep(0.5)
                self._look.set()
                continue
            await self._live.publish(positions)
            if is_interrupted:
                self.interrupt.set()
