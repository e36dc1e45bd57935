"""Enforces a turn's time limit: the turn is interrupted, as by a person, and ends as `timed_out`.

The limit spans all attempts and the time between them, so the database keeps the count. This module starts with the
time that remained at the claim. A harness that ignores the interrupt is cancelled.
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
"""Seconds that a turn may take to stop. Commands first receive a signal to stop, and are killed a few seconds later."""


class TurnClock:
    def __init__(self, claim: Claim, interrupt: asyncio.Event, task: "asyncio.Future[Outcome]", *, elapsed: float) -> None:
        """`elapsed` is the number of seconds since the claim."""
        self._claim = claim
        self._used = elapsed
        self._interrupt = interrupt
        self._task = task
        self._timer: asyncio.TimerHandle | None = None
        self.over = False
        self.cut = False
        """Whether the harness ignored the interrupt and was cancelled."""

    def __enter__(self) -> Self:
        if self._claim.seconds_left is None:
            return self
        remaining = self._claim.seconds_left - self._used
        if remaining > 0:
            self._timer = asyncio.get_running_loop().call_later(remaining, self._is_over)
        else:  # immediately: the harness may have nothing more to do
            self._is_over()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def judge(self, outcome: Outcome) -> Outcome:
        """Turn an interrupted outcome into `timed_out`. A completed or failed turn keeps its outcome."""
        if not self.over or outcome.status is not TurnStatus.INTERRUPTED:
            return outcome
        seconds = self._claim.config.timeout_seconds
        return replace(
            outcome,
            status=TurnStatus.TIMED_OUT,
            error_type="unknown_error",
            error_message=f"The turn exceeded its limit of {seconds:g} s. Its work up to then is saved.",
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
    """A preview that is not sent to anyone, for background sessions."""

    def __init__(self) -> None:
        self.event_id = ids.new_id(ids.EVENT)

    def write(self, text: str) -> None:
        """Discard the text."""
