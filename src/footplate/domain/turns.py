"""Sessions, steps and turns as values, and the pure decision of what a claim does next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from footplate.domain.events import Usage
from footplate.domain.json import JsonObject


class SessionStatus(StrEnum):
    """The reference's four; `parked` and `queued` are visible in turns, not here."""

    IDLE = "idle"
    RUNNING = "running"
    RESCHEDULING = "rescheduling"
    TERMINATED = "terminated"


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
    """How a session is worked on (S2, S3)."""

    INTERACTIVE = "interactive"
    BACKGROUND = "background"
    """Nobody watches: no text is shown while it is written."""


class WhenBusy(StrEnum):
    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class ForkedFrom:
    """The session that a fork was made of, which may be deleted by now, and where."""

    session_id: str
    event_id: str | None
    """None: the session had no event."""
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    organisation: str
    agent: JsonObject
    """The agent as resolved at creation, overrides included."""
    environment_id: str
    status: SessionStatus
    title: str | None
    metadata: dict[str, str]
    context: JsonObject
    usage: Usage
    active_seconds: float
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    forked_from: ForkedFrom | None = None
    mode: Mode = Mode.INTERACTIVE
    project_ids: Sequence[str] = ()
    """What it works on, the working directory first; none: a scratch directory."""
    workspace_id: str | None = None
    bases: Mapping[str, JsonObject] = field(default_factory=dict)
    """By project: the commit and the branch that its tree began with, once a turn has begun."""
    resources: Sequence[JsonObject] = ()
    """As the api tells them: files that are put into its tree."""
    permissions: JsonObject = field(default_factory=dict)
    """Its own rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    id: str
    session_id: str
    status: TurnStatus
    attempt: int
    """How often a worker took it up; more than one means that an earlier worker was lost, stopped or had to wait."""
    failures: int = 0
    """How many of these attempts failed for a while, and were tried again."""
    input_event_id: str
    first_seq: int
    config: JsonObject
    usage: Usage
    result: JsonObject
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a harness's work on a turn ended. Decided by the harness, committed by the engine."""

    status: TurnStatus
    text: str = ""
    pending: tuple[str, ...] = ()
    """Ids of the events that wait for an answer, when the status is `awaiting_tool_results`."""
    error_type: str | None = None
    error_message: str | None = None
    data: JsonObject = field(default_factory=dict)

    @property
    def stop_reason(self) -> JsonObject:
        if self.status is TurnStatus.AWAITING:
            return {"type": "requires_action", "event_ids": list(self.pending)}
        if self.status is TurnStatus.FAILED:
            return {"type": "retries_exhausted"}
        return {"type": "end_turn"}
