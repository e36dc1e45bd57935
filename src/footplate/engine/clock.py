"""A turn's own time: when it is over the turn is interrupted, as a person would do it, and ends as `timed_out`.

The time goes on between attempts, so it is the database that counts it; here is only what was left at the claim. A
harness that does not heed the interrupt is cut off.
"""

import asyncio
from dataclasses import replace
from typing import Final, Self

import structlog

from footplate.domain import ids
from footplate.domain.running import Claim
from footplate.domain.turns import Outcome, TurnStatus

log = structlog.get_logger(__name__)

GRACE: Final = 15.0
"""How long a turn may take to stop. A command is asked politely first, and killed some seconds later (C3)."""


class TurnClock:
    def __init__(self, claim: Claim, interrupt: asyncio.Event, task: "asyncio.Future[Outcome]", *, used: float) -> None:
        """`used`: seconds since the claim."""
        self._claim = claim
        self._used = used
        self._interrupt = interrupt
        self._task = task
        self._timer: asyncio.TimerHandle | None = None
        self.over = False
        self.cut = False
        """It did not heed the interrupt."""

    def __enter__(self) -> Self:
        if self._claim.seconds_left is None:
            return self
        left = self._claim.seconds_left - self._used
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._is_over)
        else:  # at once: the harness may have nothing left to do
            self._is_over()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def judge(self, outcome: Outcome) -> Outcome:
        """What the turn came to all the same stays: done is done, and a failure is told as such."""
        if not self.over or outcome.status is not TurnStatus.INTERRUPTED:
            return outcome
        seconds = self._claim.config.timeout_seconds
        return replace(
            outcome,
            status=TurnStatus.TIMED_OUT,
            error_type="unknown_error",
            error_message=f"The turn took longer than its limit of {seconds:g} s. What it did until then is kept.",
        )

    def _is_over(self) -> None:
        log.info("turn timed out", action="turn.timed_out", seconds=self._claim.config.timeout_seconds)
        self.over = True
        self._interrupt.set()
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._cut)

    def _cut(self) -> None:
        self.cut = True
        self._task.cancel()


class Unseen:
    """A preview that nobody wants to see."""

    def __init__(self) -> None:
        self.event_id = ids.new_id(ids.EVENT)

    def write(self, text: str) -> None:
        """Nothing is sent anywhere."""
