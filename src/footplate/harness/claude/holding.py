"""Holds subagents' calls inside the CLI while they wait for approval, because a subagent ends with the CLI's process.

The wait is limited. When it expires, or when the CLI or the turn ends, the call is denied in the log. So no approval
stays open that could not be acted on, and a late decision is refused with the reason.
"""

import asyncio
import time
from typing import Final

import structlog

from footplate.domain.errors import Fenced, FootplateError
from footplate.domain.events import Event
from footplate.domain.ports import TurnContext

log = structlog.get_logger(__name__)

NO_WAIT: Final = (
    "This call needs approval, and a subagent cannot wait for it. The agent that started the subagent can make the "
    "call itself and wait."
)
LOST: Final = "The subagent that made this call ended before the call was approved."
_INTERRUPTED: Final = "The user interrupted the turn."
_LEAVING: Final = "The worker is stopping, which ends the subagent."
_LISTENS_EVERY: Final = 0.5


class Holding:
    """The held calls of one turn."""

    def __init__(self, turn: TurnContext, hold_seconds: float) -> None:
        """`hold_seconds`: how long each call may wait."""
        self._turn = turn
        self._answers = turn.answers if hold_seconds > 0 else None
        self._seconds = hold_seconds
        self._held: set[str] = set()
        self._over = False

    @property
    def possible(self) -> bool:
        return self._answers is not None

    async def word(self, use: Event) -> Event:
        """Waits for the decision on a call. Denies the call if the wait expires or the turn ends."""
        assert self._answers is not None
        self._held.add(use.id)
        await self._answers.wanted(use)
        until = time.monotonic() + self._seconds
        while (reason := self._why_not(until)) is None:
            if (decision := await self._given(use)) is not None:
                break
            await asyncio.sleep(_LISTENS_EVERY)
        else:
            decision = await self._answers.close(use.id, reason)
        self._held.discard(use.id)  # skipped if the CLI cancels this wait: `deny_held` then denies the call
        return decision

    async def end(self, *, permanently: bool) -> None:
        """Denies all calls that are held now. `permanently`: later calls are denied too."""
        self._over |= permanently
        for event_id in [*self._held]:
            assert self._answers is not None
            reason = _INTERRUPTED if self._turn.interrupt.is_set() else LOST
            await self._answers.close(event_id, reason)
            self._held.discard(event_id)

    async def _given(self, use: Event) -> Event | None:
        assert self._answers is not None
        try:
            return await self._answers.given(use.id)
        except Fenced:
            raise
        except FootplateError as error:  # the next poll tries again
            log.warning("approval decision not read", action="claude.answer_not_read", reason=error.message)
            return None

    def _why_not(self, until: float) -> str | None:
        """Why the wait is over, for the model and for a person who decides too late. None: keep waiting."""
        if self._turn.interrupt.is_set():
            return _INTERRUPTED
        if self._turn.handover.is_set():
            return _LEAVING
        if self._over:
            return LOST
        if time.monotonic() < until:
            return None
        return f"There was no decision within {self._seconds:g} seconds. {NO_WAIT}"
