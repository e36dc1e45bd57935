"""Detects inputs that control a running turn: interrupts, and user messages that join the turn.

The worker checks for such inputs when the API notifies the worker through Redis. A lease renewal also detects such
inputs, in case a notification was lost.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Claim, LiveTurn, Nudges, TurnStore
from footplate.domain.ports.harness import SteerMessage
from footplate.engine.worker_lease import HeldTurn

log = structlog.get_logger(__name__)


class ControlInputs:
    def __init__(self, turns: TurnStore, nudges: Nudges, claim: Claim, live: LiveTurn) -> None:
        self._turns = turns
        self._nudges = nudges
        self._claim = claim
        self._live = live
        self._check_requested = asyncio.Event()
        self._may_have_steering = False
        self.interrupt = asyncio.Event()
        """Set when the turn is interrupted."""
        self._thread_interrupts: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def watching(self, held_turn: HeldTurn) -> AsyncGenerator[None, None]:
        held_turn.on_control = self._request_check
        # A lease renewal may have found a control input before this callback was set.
        if self._claim.attempt > 1 or held_turn.control_seq >= self._claim.controls_seq:
            self._request_check()
        watcher = asyncio.create_task(self._watch())
        try:
            with self._nudges.watch(self._claim.session_id, self._request_check):
                yield
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def check_earlier_interrupts(self) -> None:
        """Set `interrupt` before the harness starts, if the turn was interrupted while it waited."""
        if self._claim.control_seq >= self._claim.controls_seq:
            await self._check()

    def thread_interrupt(self, thread_id: str) -> asyncio.Event:
        """Return the event that is set when only this thread of a subagent is interrupted."""
        if thread_id not in self._thread_interrupts:
            self._thread_interrupts[thread_id] = asyncio.Event()
            self._check_requested.set()  # the interrupt may have arrived before
        return self._thread_interrupts[thread_id]

    async def claim_steering(self) -> Sequence[SteerMessage]:
        if not self._may_have_steering:
            return ()
        self._may_have_steering = False
        messages, positions = await self._turns.claim_steering(self._claim)
        await self._live.publish(positions)
        return messages

    def _request_check(self) -> None:
        """Schedule a check for interrupts now, and for steering messages at the harness's next safe point."""
        self._may_have_steering = True
        self._check_requested.set()

    async def _watch(self) -> None:
        while True:
            await self._check_requested.wait()
            self._check_requested.clear()
            try:
                await self._check()
            except FootplateError as error:
                log.warning(
                    "could not check for interrupts; will retry", action="turn.controls_failed", reason=error.message
                )
                await asyncio.sleep(0.5)
                self._check_requested.set()

    async def _check(self) -> None:
        is_interrupted, positions = await self._turns.claim_interrupts(self._claim)
        threads = await self._turns.interrupted_threads(self._claim) if self._thread_interrupts else ()
        await self._live.publish(positions)
        for thread_id in threads:
            self.thread_interrupt(thread_id).set()
        if is_interrupted:
            self.interrupt.set()
