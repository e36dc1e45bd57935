"""Data types for sessions and turns: their states, and the outcome of a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from footplate.domain.json import JsonObject
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.sessions.ending import SessionEnd
from footplate.domain.sessions.events import Usage


class SessionToWake(NamedTuple):
    """A session that has work."""

    organisation: str
    session_id: str
    priority: int | None = None
    """The engine's priority of its turns. None is the default."""
    ends_when_idle: bool = True
    """Whether its workflow ends with this work, instead of waiting a while for the next message."""


class SessionStatus(StrEnum):
    """The four states of the reference API. Parked and queued are states of turns, not of sessions."""

    IDLE = "idle"
    RUNNING = "running"
    RESCHEDULING = "rescheduling"
    TERMINATED = "terminated"


class ActivityState(StrEnum):
    """What a session is doing, or how its last turn ended. See `activity.py`."""

    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_ANSWER = "waiting_for_answer"
    WAITING_FOR_RESULT = "waiting_for_result"
    PAUSED = "paused"
    """Its steps wait until a client plays it."""
    STALLED = "stalled"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LIMIT_REACHED = "limit_reached"
    TIMED_OUT = "timed_out"
    ENDED = "ended"
    """The session accepts nothing more. Its end says how it ended."""


class SessionState(StrEnum):
    """The state of a session in one word, for lists, boards and counts. Each activity has one. See `activity.py`."""

    RUNNING = "running"
    """A turn is in progress, also if it waits for its next attempt, a client's result or child sessions."""
    NEEDS_YOU = "needs_you"
    """A person has to decide about a call or answer a question."""
    QUEUED = "queued"
    """It has work that has not started, or that no worker continues."""
    PAUSED = "paused"
    FAILED = "failed"
    """Its last turn or its end was not successful."""
    DONE = "done"
    """It has no work."""


class StallReason(StrEnum):
    NO_WORKER = "no_worker"
    WORKER_LOST = "worker_lost"
    AUTHOR_DISABLED = "author_disabled"
    """The author of the next message is a disabled member whose work was not handed over."""
    TURN_LIMIT = "turn_limit"
    """The limit on concurrent turns is reached."""
    SESSIONS = "sessions"
    """The turn waits for child sessions, which continue it by themselves."""
    NO_BACKEND = "no_backend"
    """No running worker offers the backend of the next turn."""


@dataclass(frozen=True, slots=True)
class Activity:
    state: ActivityState
    reason: StallReason | None = None
    """Why the session is stalled, is queued because of a limit, or waits for sessions. Otherwise None."""


class TurnStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    AWAITING = "awaiting_tool_results"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LIMIT_REACHED = "limit_reached"
    TIMED_OUT = "timed_out"


class Mode(StrEnum):
    """Whether a user follows the session live."""

    INTERACTIVE = "interactive"
    BACKGROUND = "background"
    """No user follows the session, so no previews are sent."""


class WhenBusy(StrEnum):
    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"
    REJECT = "reject"
    WAIT = "wait"
    """Only for steps that clients add to the queue: they never interrupt or join a turn, or end one that waits."""


@dataclass(frozen=True, slots=True)
class ForkedFrom:
    """The parent of a fork, which may have been deleted since, and the point of the fork."""

    session_id: str
    event_id: str | None
    """None: the session had no event."""
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    organisation: str
    agent: JsonObject
    """The agent as resolved at creation, including overrides."""
    environment_id: str
    status: SessionStatus
    activity: Activity = Activity(ActivityState.NEW)
    state: SessionState = SessionState.DONE
    activity_message: str | None = None
    """What it does, or why it does not move, in words."""
    activity_since: datetime | None = None
    title: str | None
    metadata: dict[str, str]
    context: JsonObject
    usage: Usage
    last_interaction_at: datetime | None = None
    """When the last response of a model arrived."""
    active_seconds: float
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    forked_from: ForkedFrom | None = None
    mode: Mode = Mode.INTERACTIVE
    project_ids: Sequence[str] = ()
    """The projects of the session; the first one is the working directory. Empty: it works in a scratch directory."""
    project_names: Mapping[str, str] = field(default_factory=dict)
    """By project id. A project that was deleted has none."""
    workspace_id: str | None = None
    bases: Mapping[str, JsonObject] = field(default_factory=dict)
    """By project: the base commit and branch of its tree. Set when the first turn begins."""
    resources: Sequence[JsonObject] = ()
    """Files that are added to its tree, in the form of the API."""
    permissions: JsonObject = field(default_factory=dict)
    """The session's own permission rules."""
    created_by: str | None = None
    owner_id: str | None = None
    owner_name: str | None = None
    audience: Audience = EVERYONE
    ends_when_done: bool = False
    """Whether the session ends by itself when its queue is empty."""
    end: SessionEnd | None = None
    group_id: str | None = None
    """The group that it belongs to: the children of a session, or a batch."""
    parent_id: str | None = None
    """The session that started it."""
    deployment_id: str | None = None
    """The deployment whose run created it."""
    backend: str | None = None
    """The backend that was chosen for the session. None: the operator's default."""
    environment: JsonObject = field(default_factory=dict)
    """The configuration of its environment when it was created, with the chosen backend."""
    conversation_id: str | None = None
    """The harness's own id of the conversation. None: it has none, or no turn has run."""


@dataclass(frozen=True, slots=True)
class TotalUsage:
    """The usage of a session and of all sessions below it."""

    sessions: int
    """How many sessions it is the sum of."""
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    id: str
    session_id: str
    status: TurnStatus
    attempt: int
    """How many workers have started on the turn. More than 1: an earlier worker was lost, stopped, or had to wait."""
    failures: int = 0
    """How many of these attempts failed temporarily and were retried."""
    handovers: int = 0
    """How many of these attempts only continued a turn that waited for a person or whose worker stopped in order."""
    input_event_id: str
    first_seq: int
    config: JsonObject
    usage: Usage
    tools: Mapping[str, tuple[int, int, float]] = field(default_factory=dict)
    """The calls, failed calls and seconds by tool. Set when the turn ends."""
    last_interaction_at: datetime | None = None
    result: JsonObject
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """The outcome of a turn. The harness decides it, and the engine commits it."""

    status: TurnStatus
    text: str = ""
    pending: tuple[str, ...] = ()
    """Ids of the events that wait for a result or a decision, if the status is `awaiting_tool_results`."""
    error_type: str | None = None
    error_message: str | None = None
    data: JsonObject = field(default_factory=dict)
    step_failed: bool = False
    """The turn completed, but what it ran did not succeed: a command, or work that a client did."""
    may_retry: bool = True
    """Whether repeating a failed step could help. Not after a denial, or an error of the request itself."""
    commit: str | None = None
    """The commit that is checked out in the working directory. The engine adds it. None: there is none, or it is not
    known."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """The same for each project, by its id."""

    @property
    def stop_reason(self) -> JsonObject:
        if self.status is TurnStatus.AWAITING:
            return {"type": "requires_action", "event_ids": list(self.pending)}
        if self.status is TurnStatus.FAILED:
            return {"type": "retries_exhausted"}
        return {"type": "end_turn"}
