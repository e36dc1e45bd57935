"""Enforces the time limit of a turn: interrupts the turn, and cancels a harness that ignores the interrupt.

The turn then ends as `timed_out`. The limit covers all attempts and the time between them, so the deadline is stored in
the database. The remaining time is read when the turn is claimed. A turn that waited for a person gets the full time
again.
"""

import asyncio
from dataclasses import replace
from typing import Final, Self

import structlog

from footplate.domain import ids
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

log = structlog.get_logger(__name__)

STOP_GRACE_SECONDS: Final = 15.0
"""Seconds that a turn may take to stop. Commands first receive a signal to stop, and are killed a few seconds later."""


class TurnTimeout:
    def __init__(
        self, claim: Claim, interrupt: asyncio.Event, task: "asyncio.Future[TurnOutcome]", *, elapsed: float
    ) -> None:
        """`elapsed` is the number of seconds since the claim."""
        self._claim = claim
        self._elapsed = elapsed
        self._interrupt = interrupt
        self._task = task
        self._timer: asyncio.TimerHandle | None = None
        self.is_expired = False
        self.is_cancelled = False
        """Whether the harness ignored the interrupt and was cancelled."""

    def __enter__(self) -> Self:
        if self._claim.remaining_seconds is None:
            return self
        remaining = self._claim.remaining_seconds - self._elapsed
        if remaining > 0:
            self._timer = asyncio.get_running_loop().call_later(remaining, self._expire)
        else:  # immediately: the harness may have nothing more to do
            self._expire()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def apply_to_outcome(self, outcome: TurnOutcome) -> TurnOutcome:
        """Turn an interrupted outcome into `timed_out`. A completed or failed turn keeps its outcome."""
        if not self.is_expired or outcome.status is not TurnStatus.INTERRUPTED:
            return outcome
        seconds = self._claim.config.timeout_seconds
        return replace(
            outcome,
            status=TurnStatus.TIMED_OUT,
            error_type="unknown_error",
            error_message=f"The turn exceeded its time limit of {seconds:g} s. Its work so far is saved.",
        )

    def _expire(self) -> None:
        log.info("turn timed out", action="turn.timed_out", seconds=self._claim.config.timeout_seconds)
        self.is_expired = True
        self._interrupt.set()
        self._timer = asyncio.get_running_loop().call_later(STOP_GRACE_SECONDS, self._cancel_harness)

    def _cancel_harness(self) -> None:
        self.is_cancelled = True
        self._task.cancel()


class DiscardedPreview:
    """A preview that is not sent to anyone, for background sessions."""

    def __init__(self) -> None:
        self.event_id = ids.new_id(ids.EVENT)

    def write(self, text: str) -> None:
        """Discard the text."""
