"""Makes a subagent's tool call wait for approval inside the Claude Code CLI, for a limited time.

A subagent exists only as long as the CLI process, so its turn cannot be suspended. If the time expires, or the CLI or
the turn ends, the call is recorded as denied. A later decision is rejected with the reason.
"""

import asyncio
import time
from typing import Final

import structlog

from footplate.domain.errors import Fenced, FootplateError
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event

log = structlog.get_logger(__name__)

CANNOT_WAIT: Final = (
    "This call needs approval, and a subagent cannot wait for it. The agent that started the subagent can make the "
    "call itself and wait."
)
SUBAGENT_ENDED: Final = "The subagent that made this call ended before the call was approved."
_INTERRUPTED: Final = "The user interrupted the turn."
_THREAD_INTERRUPTED: Final = "The user interrupted the subagent."
_WORKER_STOPPING: Final = "The worker is stopping, which ends the subagent."
_POLL_SECONDS: Final = 0.5


class SubagentApprovals:
    """The held calls of one turn."""

    def __init__(self, turn: TurnContext, hold_seconds: float) -> None:
        """`hold_seconds`: how long each call may wait."""
        self._turn = turn
        self._approvals = turn.held_approvals if hold_seconds > 0 else None
        self._hold_seconds = hold_seconds
        self._held_ids: set[str] = set()
        self._is_over = False

    @property
    def is_enabled(self) -> bool:
        return self._approvals is not None

    async def wait_for_decision(self, use: Event) -> Event:
        """Waits for the decision on a call. Denies the call if the wait expires or the turn ends."""
        assert self._approvals is not None
        self._held_ids.add(use.id)
        await self._approvals.announce(use)
        until = time.monotonic() + self._hold_seconds
        while (reason := self._end_reason(until, use)) is None:
            if (decision := await self._find_decision(use)) is not None:
                break
            await asyncio.sleep(_POLL_SECONDS)
        else:
            decision = await self._approvals.close(use.id, reason)
        self._held_ids.discard(use.id)  # skipped if the CLI cancels this wait: `deny_held` then denies the call
        return decision

    async def deny_held(self, *, permanently: bool) -> None:
        """Denies all calls that are held now. `permanently`: later calls are denied too."""
        self._is_over |= permanently
        for event_id in [*self._held_ids]:
            assert self._approvals is not None
            reason = _INTERRUPTED if self._turn.interrupt.is_set() else SUBAGENT_ENDED
            await self._approvals.close(event_id, reason)
            self._held_ids.discard(event_id)

    async def _find_decision(self, use: Event) -> Event | None:
        assert self._approvals is not None
        try:
            return await self._approvals.find_decision(use.id)
        except Fenced:
            raise
        except FootplateError as error:  # the next poll tries again
            log.warning(
                "approval decision could not be read; will retry", action="claude.answer_not_read", reason=error.message
            )
            return None

    def _end_reason(self, until: float, use: Event) -> str | None:
        """Why the wait is over, for the model and for a person who decides too late. None: keep waiting."""
        if self._turn.interrupt.is_set():
            return _INTERRUPTED
        thread_id = use.body.get(threads.THREAD_ID)
        if isinstance(thread_id, str) and self._turn.thread_interrupt(thread_id).is_set():
            return _THREAD_INTERRUPTED
        if self._turn.handover.is_set():
            return _WORKER_STOPPING
        if self._is_over:
            return SUBAGENT_ENDED
        if time.monotonic() < until:
            return None
        return f"There was no decision within {self._hold_seconds:g} seconds. {CANNOT_WAIT}"
