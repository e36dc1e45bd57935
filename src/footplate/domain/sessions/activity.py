"""Derives what a session is doing from its rows. The reference API's `status` is `idle` in most of these states.

Nothing is stored: the head, the worker's lease, pending approvals and questions, and the last turn already determine
the activity and the state. One table of rules decides both. `derive_activity` applies it to the facts of one session,
and `store/session_state_query.py` turns it into a condition of queries, so a list never contradicts its filter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.sessions.turns import (
    Activity,
    ActivityState,
    SessionState,
    SessionStatus,
    StallReason,
    TurnStatus,
)

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
    paused_by_group: bool = False
    """Whether it is paused because it starts when another member of its group has ended."""
    paused_by_failure: bool = False
    """Whether it is paused because a step failed."""
    has_failed: bool = False
    """Whether its last turn, the step of that turn, or its end was not successful."""
    last_turn: str | None
    """The status of the last turn if it has ended. None: there is no turn."""
    last_turn_succeeded: bool = True
    """False also for a completed turn if its step has failed: a command, or work of a client or of child sessions."""

    @property
    def is_ended(self) -> bool:
        return self.status is SessionStatus.TERMINATED

    @property
    def is_running(self) -> bool:
        return self.status is SessionStatus.RUNNING

    @property
    def is_retrying(self) -> bool:
        return self.status is SessionStatus.RESCHEDULING

    @property
    def has_work(self) -> bool:
        return self.status is not SessionStatus.IDLE or self.has_input

    @property
    def has_live_holder(self) -> bool:
        return self.holder_alive is True

    @property
    def has_lost_holder(self) -> bool:
        return self.holder_alive is False


@dataclass(frozen=True, slots=True)
class ActivityRule:
    """The activity and the state of sessions whose facts all have these values."""

    state: SessionState
    activity: Activity | None
    """None: how the last turn ended."""
    facts: Mapping[str, bool] = field(default_factory=dict)


def _rule(
    state: SessionState, activity: ActivityState | None, reason: StallReason | None = None, **facts: bool
) -> ActivityRule:
    return ActivityRule(state, None if activity is None else Activity(activity, reason), facts)


ACTIVITY_RULES: Final[Sequence[ActivityRule]] = (
    _rule(SessionState.FAILED, ActivityState.ENDED, is_ended=True, has_failed=True),
    _rule(SessionState.DONE, ActivityState.ENDED, is_ended=True),
    _rule(*(SessionState.QUEUED, ActivityState.STALLED, StallReason.NO_WORKER), has_work=True, any_worker_alive=False),
    _rule(
        *(SessionState.QUEUED, ActivityState.STALLED, StallReason.NO_BACKEND),
        has_work=True,
        lacks_backend=True,
        has_live_holder=False,
    ),
    _rule(
        *(SessionState.QUEUED, ActivityState.STALLED, StallReason.WORKER_LOST), is_running=True, has_lost_holder=True
    ),
    _rule(SessionState.NEEDS_YOU, ActivityState.WAITING_FOR_APPROVAL, needs_approval=True),
    _rule(SessionState.NEEDS_YOU, ActivityState.WAITING_FOR_ANSWER, asks_question=True),
    _rule(SessionState.RUNNING, ActivityState.RETRYING, is_retrying=True),
    _rule(SessionState.RUNNING, ActivityState.RUNNING, is_running=True, has_live_holder=True),
    _rule(SessionState.QUEUED, ActivityState.QUEUED, StallReason.TURN_LIMIT, has_work=True, is_deferred=True),
    _rule(SessionState.QUEUED, ActivityState.QUEUED, has_work=True),
    _rule(SessionState.QUEUED, ActivityState.STALLED, StallReason.AUTHOR_DISABLED, author_disabled=True),
    _rule(
        *(SessionState.RUNNING, ActivityState.WAITING_FOR_RESULT, StallReason.SESSIONS),
        has_open_turn=True,
        waits_for_sessions=True,
    ),
    _rule(SessionState.RUNNING, ActivityState.WAITING_FOR_RESULT, has_open_turn=True),
    _rule(SessionState.QUEUED, ActivityState.PAUSED, is_paused=True, paused_by_group=True),
    _rule(SessionState.FAILED, ActivityState.PAUSED, is_paused=True, paused_by_failure=True, has_failed=True),
    _rule(SessionState.PAUSED, ActivityState.PAUSED, is_paused=True),
    _rule(SessionState.FAILED, None, has_failed=True),
    _rule(SessionState.DONE, None),
)
"""The first rule that applies decides. The last one always does."""


def derive_activity(facts: ActivityFacts) -> tuple[Activity, SessionState]:
    rule = next(
        rule for rule in ACTIVITY_RULES if all(getattr(facts, name) is value for name, value in rule.facts.items())
    )
    return rule.activity or _describe_last_turn(facts), rule.state


def _describe_last_turn(facts: ActivityFacts) -> Activity:
    if facts.last_turn == TurnStatus.COMPLETED and not facts.last_turn_succeeded:
        return Activity(ActivityState.FAILED)
    return Activity(ActivityState(facts.last_turn)) if facts.last_turn else Activity(ActivityState.NEW)
