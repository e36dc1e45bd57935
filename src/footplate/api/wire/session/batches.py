"""Wire models of batches, a Footplate extension of the reference API: many background sessions with one request."""

from collections import Counter
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from footplate.api.wire.policy.permissions import OwnPermissions
from footplate.api.wire.projects import OrderedIds
from footplate.api.wire.request_base import (
    Body,
    Context,
    Id,
    Metadata,
    Name,
    Parameters,
    Text,
    dump_sent_fields,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.api.wire.session.content import MessageContent
from footplate.api.wire.session.sessions import AgentChoice, Title, serialize_token_usage
from footplate.api.wire.session.steps import MAX_STEPS, NewStep
from footplate.api.wire.visibility import TeamId, VisibilityName, serialize_audience
from footplate.domain.json import JsonObject
from footplate.domain.sessions import events
from footplate.domain.sessions.batches import MAX_JOBS, RETRIED_BY_DEFAULT, Batch, Job, JobState

_Outcome = Literal["completed", "failed", "cancelled", "expired"]
_State = Literal["pending", "running", "waiting", "completed", "failed", "cancelled", "expired"]
Prompt = Annotated[str, StringConstraints(min_length=1)]


class BatchJob(Body):
    """The request for one session. It has a prompt, or steps."""

    custom_id: Annotated[
        str,
        StringConstraints(pattern=r"^[a-zA-Z0-9_.-]{1,64}$"),
        Field(description="Names the job in the results. Each job of a batch has another one."),
    ]
    agent: AgentChoice
    environment_id: Id
    prompt: Annotated[
        Prompt | MessageContent | None, Field(description="The message to the agent: text, or content as in an event.")
    ] = None
    steps: Annotated[
        list[Annotated[NewStep, Field(discriminator="kind")]] | None, Field(min_length=1, max_length=MAX_STEPS)
    ] = None
    title: Title | None = None
    metadata: Metadata = Field(default_factory=dict)
    context: Context | None = None
    project_ids: OrderedIds | None = None
    workspace_id: Id | None = None
    permissions: OwnPermissions | None = None

    @model_validator(mode="after")
    def _check_work(self) -> Self:
        if (self.prompt is None) == (self.steps is None):
            raise ValueError("must have either `prompt` or `steps`")
        return self

    @property
    def content(self) -> list[JsonObject]:
        """The content of the message. Empty if the job has steps."""
        if isinstance(self.prompt, str):
            return [events.text_block(self.prompt)]
        return [dump_sent_fields(block) for block in self.prompt or ()]


class BatchCreate(Body):
    name: Name | None = None
    priority: Annotated[
        Literal["high", "normal", "low"],
        Field(description="`high` as interactive sessions. Turns with a higher priority start first."),
    ] = "normal"
    max_running: Annotated[
        int | None, Field(ge=1, le=MAX_JOBS, description="How many jobs run at once. Null: no limit of its own.")
    ] = None
    visibility: VisibilityName = "organisation"
    team_id: TeamId = None
    requests: Annotated[list[BatchJob], Field(min_length=1, max_length=MAX_JOBS)]

    @model_validator(mode="after")
    def _check_custom_ids(self) -> Self:
        (custom_id, count), *_ = Counter(job.custom_id for job in self.requests).most_common(1)
        if count > 1:
            raise ValueError(f"the `custom_id` {custom_id!r} appears {count} times")
        return self


class RetryBatch(Body):
    outcomes: Annotated[
        list[Literal["failed", "cancelled", "completed"]] | None,
        Field(min_length=1, description="The jobs to repeat, by outcome. Default: those that failed."),
    ] = None

    @property
    def states(self) -> list[JobState]:
        if self.outcomes is None:
            return [*RETRIED_BY_DEFAULT]
        expired = [JobState.EXPIRED] if "failed" in self.outcomes else []
        return [*(JobState(outcome) for outcome in dict.fromkeys(self.outcomes)), *expired]


class ListBatches(Parameters):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    page: Text | None = None


class ListJobs(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    page: Text | None = None
    states: Annotated[list[_State], Field(alias="states[]", default_factory=list)]
    custom_id: Text | None = None

    @property
    def parsed_states(self) -> list[JobState]:
        return [JobState(state) for state in self.states]


class ListResults(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    page: Text | None = None
    after: Annotated[
        int | None,
        Field(
            ge=0,
            le=2**31 - 1,
            description="The `number` of the last result that you have. A later page has its own start.",
        ),
    ] = None
    outcomes: Annotated[list[_Outcome], Field(alias="outcomes[]", default_factory=list)]

    @property
    def parsed_outcomes(self) -> list[JobState]:
        return [JobState(outcome) for outcome in self.outcomes]


class BatchCountsResponse(ResponseModel):
    pending: int
    running: int
    waiting: int
    completed: int
    failed: int
    cancelled: int


class BatchResponse(ResponseModel):
    id: str
    type: Literal["session_batch"]
    name: str | None
    status: Literal["in_progress", "cancelling", "ended"]
    priority: Literal["high", "normal", "low"]
    max_running: int | None
    total: int
    counts: BatchCountsResponse
    retry_of: str | None
    created_by: str
    created_at: datetime
    cancelled_at: datetime | None
    ended_at: datetime | None


class JobResponse(ResponseModel):
    type: Literal["session_batch_job"]
    batch_id: str
    custom_id: str
    index: int
    session_id: str
    state: _State
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class JobMetricsResponse(ResponseModel):
    duration_seconds: float
    waiting_seconds: float
    active_seconds: float
    turns: int
    usage: dict[str, JsonValue]


class JobResultResponse(ResponseModel):
    type: Literal["session_batch_result"]
    number: int
    batch_id: str
    custom_id: str
    index: int
    session_id: str
    outcome: _Outcome
    success: bool
    text: str
    data: dict[str, JsonValue]
    error_message: str | None
    metrics: JobMetricsResponse
    ended_at: datetime


def serialize_batch(batch: Batch) -> JsonObject:
    return {
        "id": batch.id,
        "type": "session_batch",
        "name": batch.name,
        "status": batch.status.value,
        "priority": batch.priority.value,
        "max_running": batch.max_running,
        "total": batch.total,
        "counts": batch.counts.dump(),
        "retry_of": batch.retry_of,
        "created_by": batch.created_by,
        **serialize_audience(batch.audience),
        "created_at": timestamp(batch.created_at),
        "cancelled_at": optional_timestamp(batch.cancelled_at),
        "ended_at": optional_timestamp(batch.ended_at),
    }


def serialize_job(job: Job) -> JsonObject:
    return {
        "type": "session_batch_job",
        "batch_id": job.batch_id,
        "custom_id": job.custom_id,
        "index": job.index,
        "session_id": job.session_id,
        "state": job.state.value,
        "created_at": timestamp(job.created_at),
        "started_at": optional_timestamp(job.started_at),
        "ended_at": optional_timestamp(job.ended_at),
    }


def serialize_job_result(job: Job) -> JsonObject:
    return {
        "type": "session_batch_result",
        "number": job.number,
        "batch_id": job.batch_id,
        "custom_id": job.custom_id,
        "index": job.index,
        "session_id": job.session_id,
        "outcome": job.state.value,
        "success": job.state is JobState.COMPLETED,
        "text": str(job.result.get("text") or ""),
        "data": job.data,
        "error_message": job.error_message,
        "metrics": _serialize_metrics(job),
        "ended_at": optional_timestamp(job.ended_at),
    }


def _serialize_metrics(job: Job) -> JsonObject:
    ended = job.ended_at or job.created_at
    started = job.started_at or ended
    return {
        "duration_seconds": (ended - started).total_seconds(),
        "waiting_seconds": (started - job.created_at).total_seconds(),
        "active_seconds": job.active_seconds,
        "turns": job.turns,
        "usage": serialize_token_usage(job.usage),
    }
