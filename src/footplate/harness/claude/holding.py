"""Calls that wait for a person inside the CLI, because what made them ends with its process: a subagent's.

They wait for a while, not for days. When that is over, or what holds them is, they are denied in the log: nothing stays
open that nobody could go on with, and who answers later hears why it is too late.
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
    "A person would have to allow it, and a subagent cannot wait for one: what it may not do itself is done by the "
    "agent that asked it, which can."
)
LOST: Final = "The process of the subagent that made this call was lost, and the call with it."
_INTERRUPTED: Final = "The user interrupted the turn."
_LEAVING: Final = "The worker stops, and a subagent does not outlive it."
_LISTENS_EVERY: Final = 0.5


class Holding:
    """Of one turn."""

    def __init__(self, turn: TurnContext, seconds: float) -> None:
        """`seconds`: how long each may wait."""
        self._turn = turn
        self._answers = turn.answers if seconds > 0 else None
        self._seconds = seconds
        self._held: set[str] = set()
        self._over = False

    @property
    def possible(self) -> bool:
        return self._answers is not None

    async def word(self, use: Event) -> Event:
        """What stands, once somebody has said it or nobody can any more."""
        assert self._answers is not None
        self._held.add(use.id)
        await self._answers.wanted(use)
        until = time.monotonic() + self._seconds
        while (reason := self._why_not(until)) is None:
            if (word := await self._given(use)) is not None:
                break
            await asyncio.sleep(_LISTENS_EVERY)
        else:
            word = await self._answers.close(use.id, reason)
        self._held.discard(use.id)  # not where the CLI broke it off: then it has to be ended
        return word

    async def end(self, *, for_good: bool) -> None:
        """Nobody waits any more for a word on what is held by now. `for_good`: nor on anything else."""
        self._over |= for_good
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
        except FootplateError as error:  # it is asked again in a moment
            log.warning("answer not read", action="claude.answer_not_read", reason=error.message)
            return None

    def _why_not(self, until: float) -> str | None:
        """Why it waits no longer, for the model and for who answers too late."""
        if self._turn.interrupt.is_set():
            return _INTERRUPTED
        if self._turn.handover.is_set():
            return _LEAVING
        if self._over:
            return LOST
        if time.monotonic() < until:
            return None
        return f"Nobody answered within {self._seconds:g} seconds. {NO_WAIT}"
