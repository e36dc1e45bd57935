"""Derives what a session is doing from its rows. The reference API's `status` is `idle` in most of these states.

Nothing is stored: the head, the worker's lease, pending approvals and questions, and the last turn already determine
the state.
"""

from dataclasses import dataclass
from typing import Final

from footplate.domain.sessions.turns import Activity, ActivityState, SessionStatus, StallReason, TurnStatus

COUNTED_STATES: Final = (
    ActivityState.QUEUED,
    ActivityState.RUNNING,
    ActivityState.RETRYING,
    ActivityState.WAITING_FOR_APPROVAL,
    ActivityState.WAITING_FOR_ANSWER,
    ActivityState.STALLED,
)
"""The states whose sessions can be counted without reading every session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFacts:
    """The facts about a session that determine its activity."""

    status: SessionStatus
    has_input: bool
    """A message, result or decision that no turn has processed yet."""
    is_deferred: bool = False
    """Whether its next turn waits because the limit on concurrent turns is reached."""
    has_open_turn: bool
    needs_approval: bool
    asks_question: bool = False
    waits_for_sessions: bool = False
    """Whether the open turn is parked and waits for child sessions, and for nothing else."""
    holder_alive: bool | None
    """Whether the worker that holds the session has a valid lease. None: no worker holds it."""
    any_worker_alive: bool
    lacks_backend: bool = False
    """Whether no running worker offers the backend of the next turn."""
    author_disabled: bool = False
    """Whether the next message has to wait because its author is disabled."""
    is_paused: bool = False
    last_turn: str | None
    """The status of the last turn if it has ended. None: there is no turn."""
    last_turn_succeeded: bool = True
    """False also for a completed turn if its step has failed: a command, or work of a client or of child sessions."""


def derive_activity(facts: ActivityFacts) -> Activity:  # noqa: C901, PLR0911, PLR0912 - one return for each state
    if facts.status is SessionStatus.TERMINATED:
        return Activity(ActivityState.ENDED)
    has_work = facts.status is not SessionStatus.IDLE or facts.has_input
    if has_work and not facts.any_worker_alive:
        return Activity(ActivityState.STALLED, StallReason.NO_WORKER)
    if has_work and facts.lacks_backend and not facts.holder_alive:
        return Activity(ActivityState.STALLED, StallReason.NO_BACKEND)
    if facts.status is SessionStatus.RUNNING and facts.holder_alive is False:
        return Activity(ActivityState.STALLED, StallReason.WORKER_LOST)
    if facts.needs_approval:
        return Activity(ActivityState.WAITING_FOR_APPROVAL)
    if facts.asks_question:
        return Activity(ActivityState.WAITING_FOR_ANSWER)
    if facts.status is SessionStatus.RESCHEDULING:
        return Activity(ActivityState.RETRYING)
    if facts.status is SessionStatus.RUNNING and facts.holder_alive:
        return Activity(ActivityState.RUNNING)
    if has_work:
        return Activity(ActivityState.QUEUED, StallReason.TURN_LIMIT if facts.is_deferred else None)
    if facts.author_disabled:
        return Activity(ActivityState.STALLED, StallReason.AUTHOR_DISABLED)
    if facts.has_open_turn:
        return Activity(ActivityState.WAITING_FOR_RESULT, StallReason.SESSIONS if facts.waits_for_sessions else None)
    if facts.is_paused:
        return Activity(ActivityState.PAUSED)
    if facts.last_turn == TurnStatus.COMPLETED and not facts.last_turn_succeeded:
        return Activity(ActivityState.FAILED)
    return Activity(ActivityState(facts.last_turn)) if facts.last_turn else Activity(ActivityState.NEW)
