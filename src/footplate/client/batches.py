"""Client methods and models for batches: many background sessions that are created with one request."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import ResponseModel, Usage
from footplate.client.transport import Transport

JobOutcome = Literal["completed", "failed", "cancelled", "expired"]
JobState = Literal["pending", "running", "waiting", "completed", "failed", "cancelled", "expired"]
BatchPriority = Literal["high", "normal", "low"]
_PATH = "/v1/session_batches"


class BatchCounts(ResponseModel):
    pending: int = 0
    running: int = 0
    waiting: int = 0
    """Jobs that wait for a person or a client."""
    completed: int = 0
    failed: int = 0
    cancelled: int = 0


class Batch(ResponseModel):
    id: str
    name: str | None = None
    status: Literal["in_progress", "cancelling", "ended"]
    priority: BatchPriority
    max_running: int | None = None
    total: int
    counts: BatchCounts
    retry_of: str | None = None
    """The batch whose jobs this one repeats."""
    created_by: str
    created_at: datetime
    cancelled_at: datetime | None = None
    ended_at: datetime | None = None


class BatchJob(ResponseModel):
    batch_id: str
    custom_id: str
    index: int
    session_id: str
    state: JobState
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class JobMetrics(ResponseModel):
    duration_seconds: float = 0.0
    waiting_seconds: float = 0.0
    """From the creation of the batch to the start of the first turn."""
    active_seconds: float = 0.0
    turns: int = 0
    usage: Usage


class JobResult(ResponseModel):
    number: int
    """How many jobs had ended when this one did, including it."""
    batch_id: str
    custom_id: str
    index: int
    session_id: str
    outcome: JobOutcome
    success: bool
    text: str = ""
    """The agent's last message, or the output of the last command."""
    data: dict[str, Any]
    error_message: str | None = None
    metrics: JobMetrics
    ended_at: datetime


class Batches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self,
        requests: Sequence[Mapping[str, Any]],
        *,
        name: str | None = None,
        priority: BatchPriority | None = None,
        max_running: int | None = None,
        visibility: str | None = None,
        team_id: str | None = None,
    ) -> Batch:
        """Creates a session for each request, all of them or none. At most 5,000.

        A request has `custom_id`, `agent`, `environment_id`, and either `prompt` or `steps`. It can have `title`,
        `metadata`, `context`, `project_ids`, `workspace_id` and `permissions`, as a session.
        """
        others = drop_none(
            name=name, priority=priority, max_running=max_running, visibility=visibility, team_id=team_id
        )
        body = {"requests": [dict(request) for request in requests], **others}
        return Batch.model_validate(await self._transport.post(_PATH, body))

    def list(self, *, limit: int | None = None) -> Pages[Batch]:
        """Lists batches, newest first."""
        return Pages(self._transport, _PATH, Batch, {"limit": limit})

    async def retrieve(self, batch_id: str) -> Batch:
        return Batch.model_validate(await self._transport.get(f"{_PATH}/{batch_id}"))

    def jobs(
        self,
        batch_id: str,
        *,
        states: Sequence[JobState] = (),
        custom_id: str | None = None,
        limit: int | None = None,
    ) -> Pages[BatchJob]:
        """Lists jobs in the order of the request, ended or not."""
        params = {"limit": limit, "states[]": [*states] or None, "custom_id": custom_id}
        return Pages(self._transport, f"{_PATH}/{batch_id}/jobs", BatchJob, params)

    def results(
        self, batch_id: str, *, outcomes: Sequence[JobOutcome] = (), after: int | None = None, limit: int | None = None
    ) -> Pages[JobResult]:
        """Lists the results of ended jobs, in the order in which they ended. `after` is the number of a result."""
        params = {"limit": limit, "outcomes[]": [*outcomes] or None, "after": after}
        return Pages(self._transport, f"{_PATH}/{batch_id}/results", JobResult, params)

    async def cancel(self, batch_id: str) -> Batch:
        """Cancels the jobs that have not ended."""
        return Batch.model_validate(await self._transport.post(f"{_PATH}/{batch_id}/cancel"))

    async def retry(self, batch_id: str, *, outcomes: Sequence[JobOutcome] | None = None) -> Batch:
        """Creates a batch that repeats jobs in new sessions. Default: those that failed."""
        body = drop_none(outcomes=None if outcomes is None else [*outcomes])
        return Batch.model_validate(await self._transport.post(f"{_PATH}/{batch_id}/retry", body))
