"""Batches: many sessions that are created with one request, run in the background, and each end with one result.

A *job* is one session of a batch. It ends when its prompt or its steps have ended. All jobs of a batch are created, or
none. The engine decides when each of them runs: jobs with a higher priority first, and the organisations in turns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from footplate.domain.json import Json, JsonObject, as_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page
from footplate.domain.sessions import steps
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.steps import StepDefinition

MAX_JOBS: Final = 5_000
JOB_ENDED: Final = "batch.job_ended"
"""The event in the log of a job that has ended."""
ENDED: Final = "batch.ended"
"""The event in the log of the job that ended last."""


class BatchPriority(StrEnum):
    HIGH = "high"
    """As interactive sessions."""
    NORMAL = "normal"
    LOW = "low"

    @property
    def engine_priority(self) -> int:
        """The priority of the jobs' turns. Turns of other sessions have 3; a lower number runs first."""
        return {BatchPriority.HIGH: 3, BatchPriority.NORMAL: 4, BatchPriority.LOW: 5}[self]


class JobState(StrEnum):
    PENDING = "pending"
    """It has not started, or waits because of a limit."""
    RUNNING = "running"
    WAITING = "waiting"
    """For a person or a client: an approval, the result of an external step, or `play`."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It waited for longer than its policy allows. Counts as failed."""


RETRIED_BY_DEFAULT: Final = (JobState.FAILED, JobState.EXPIRED)


class BatchStatus(StrEnum):
    IN_PROGRESS = "in_progress"
    CANCELLING = "cancelling"
    """A client has cancelled it, and some jobs have not ended yet."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefinition:
    """A job of a new batch."""

    custom_id: str
    agent: JsonObject
    """The agent as the session stores it."""
    environment_id: str
    content: Sequence[JsonObject] = ()
    """The content of its message. A job without a message has steps."""
    steps: Sequence[tuple[StepDefinition, JsonObject]] = ()
    """The steps of its queue, each with the overrides of its turn."""
    title: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    context: JsonObject = field(default_factory=dict)
    project_ids: Sequence[str] = ()
    workspace_id: str | None = None
    permissions: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDefinition:
    jobs: Sequence[JobDefinition]
    name: str | None = None
    priority: BatchPriority = BatchPriority.NORMAL
    max_running: int | None = None
    """How many jobs run at once. None: as many as the workers can run."""
    audience: Audience = EVERYONE


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    pending: int = 0
    running: int = 0
    waiting: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    def dump(self) -> JsonObject:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    id: str
    organisation: str
    name: str | None
    priority: BatchPriority
    max_running: int | None
    total: int
    counts: BatchCounts
    retry_of: str | None
    """The batch whose jobs this one repeats."""
    created_by: str
    audience: Audience
    created_at: datetime
    cancelled_at: datetime | None
    ended_at: datetime | None

    @property
    def status(self) -> BatchStatus:
        if self.ended_at is not None:
            return BatchStatus.ENDED
        return BatchStatus.IN_PROGRESS if self.cancelled_at is None else BatchStatus.CANCELLING


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, and its result once it has ended."""

    batch_id: str
    custom_id: str
    index: int
    number: int | None
    """How many jobs had ended when this one did, including it."""
    session_id: str
    state: JobState
    result: JsonObject
    """The result of its last turn."""
    end_reason: str | None
    usage: Usage
    active_seconds: float
    turns: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def data(self) -> JsonObject:
        """What its last turn returned. The output of a command is in the fields that a step's result has."""
        data = as_object(self.result.get("data"))
        command = as_object(data.get("command"))
        if not command:
            return data
        others = {name: value for name, value in data.items() if name != "command"}
        shown: dict[str, Json] = {name: steps.stream_text(command.get(name)) for name in ("stdout", "stderr")}
        return {**others, "exit_code": command.get("exit_code"), **shown}

    @property
    def error_message(self) -> str | None:
        if self.state is JobState.COMPLETED or self.ended_at is None:
            return None
        command = as_object(as_object(self.result.get("data")).get("command"))
        found = self.end_reason or command.get("error") or self.result.get("error")
        return str(found) if found else f"The job has {self.state.value}."


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBatch:
    batch: Batch
    session_ids: Sequence[str]
    """The sessions to wake after the commit."""


class BatchReads(Protocol):
    async def batch(self, principal: Principal, batch_id: str) -> Batch: ...
    async def batches(self, principal: Principal, page: Page) -> Sequence[Batch]: ...
    async def jobs(
        self,
        principal: Principal,
        batch_id: str,
        *,
        states: Sequence[JobState] = (),
        custom_id: str | None = None,
        limit: int,
        after: int | None,
    ) -> Sequence[Job]:
        """Return jobs in the order of the request. `after` is an index."""

    async def job_results(
        self, principal: Principal, batch_id: str, *, states: Sequence[JobState] = (), limit: int, after: int
    ) -> Sequence[Job]:
        """Return ended jobs in the order in which they ended. `after` is a number."""


class BatchUnit(Protocol):
    async def create_batch(self, principal: Principal, definition: BatchDefinition) -> CreatedBatch: ...
    async def retry_batch(
        self,
        principal: Principal,
        batch_id: str,
        states: Sequence[JobState],
        *,
        check_context: Callable[[JsonObject], None] | None = None,
    ) -> CreatedBatch:
        """Create a batch that repeats the jobs that ended in these states. `check_context` raises if the context of a
        job is not allowed any more.
        """

    async def cancel_batch(self, principal: Principal, batch_id: str) -> Batch:
        """Record that the jobs that have not ended are cancelled. They end after the commit."""
