"""Wire models of deployments and their runs, with fields that the reference API does not have."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from footplate.api.wire.files_and_resources import FileResources
from footplate.api.wire.policy.permissions import OwnPermissions, serialize_permissions
from footplate.api.wire.projects import OrderedIds
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Context,
    Id,
    Metadata,
    MetadataPatch,
    Name,
    Parameters,
    Text,
    Unsupported,
    UnsupportedList,
    UtcTime,
    dump_sent_fields,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.api.wire.session.content import MessageContent
from footplate.api.wire.session.sessions import AgentChoice
from footplate.api.wire.session.steps import NewStep
from footplate.api.wire.visibility import TeamId, VisibilityName, serialize_audience
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import cron, deployments
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import Deployment, DeploymentRun
from footplate.domain.sessions.steps import StepDefinition, StepKind

_Overlap = Literal["allow_all", "skip", "buffer_one", "cancel_other"]


class InitialMessage(Body):
    """A message that each session of the deployment starts with."""

    type: Literal["user.message"]
    content: MessageContent

    def to_body(self) -> JsonObject:
        return {"content": [dump_sent_fields(block) for block in self.content]}


class CronParams(Body):
    type: Literal["cron"]
    expression: Annotated[
        Text,
        StringConstraints(max_length=cron.MAX_EXPRESSION),
        Field(description="Five fields: minute, hour, day of month, month, day of week."),
    ]
    timezone: Annotated[
        Text, StringConstraints(max_length=64), Field(description="An IANA time zone, such as `Europe/Berlin`.")
    ]

    def to_schedule(self) -> CronSchedule:
        schedule = CronSchedule(" ".join(self.expression.split()), self.timezone)
        schedule.check()
        return schedule


Description = Annotated[Text, StringConstraints(max_length=2048)]
InitialEvents = Annotated[
    list[InitialMessage],
    Field(max_length=deployments.MAX_MESSAGES, description="Only `user.message`. May be empty if there are steps."),
]
Steps = Annotated[
    list[Annotated[NewStep, Field(discriminator="kind")]],
    Field(max_length=deployments.MAX_STEPS, description="Steps that follow the messages in the queue of each session."),
]
OverlapField = Annotated[
    _Overlap,
    Field(description="What the schedule does while the session of an earlier run still works or waits for a person."),
]
CatchUpSeconds = Annotated[
    int,
    Field(
        ge=deployments.MIN_CATCH_UP_SECONDS,
        le=deployments.MAX_CATCH_UP_SECONDS,
        description="How late a scheduled run may start, for example after an outage.",
    ),
]


class DeploymentCreate(Body):
    name: Name
    agent: AgentChoice
    environment_id: Id
    initial_events: Annotated[InitialEvents, Field(default_factory=list)]
    description: Description | None = None
    metadata: Metadata = Field(default_factory=dict)
    resources: FileResources | None = None
    schedule: CronParams | None = None
    steps: Steps | None = None
    overlap_policy: OverlapField = "allow_all"
    catch_up_seconds: CatchUpSeconds = deployments.DEFAULT_CATCH_UP_SECONDS
    project_ids: OrderedIds | None = None
    workspace_id: Id | None = None
    context: Context | None = None
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = "organisation"
    team_id: TeamId = None
    ends_when_done: Annotated[bool, Field(description="As for a session. A session that has ended can be forked.")] = (
        False
    )
    vault_ids: UnsupportedList = None
    budget: Unsupported = None


class DeploymentUpdate(Body):
    """Omitted fields keep their values, lists are replaced, and metadata is merged by key."""

    name: Name = NOT_NULLABLE
    agent: AgentChoice = NOT_NULLABLE
    environment_id: Id = NOT_NULLABLE
    initial_events: InitialEvents = NOT_NULLABLE
    description: Description | None = None
    metadata: MetadataPatch | None = None
    resources: FileResources | None = None
    schedule: CronParams | None = None
    steps: Steps | None = None
    overlap_policy: OverlapField = NOT_NULLABLE
    catch_up_seconds: CatchUpSeconds = NOT_NULLABLE
    project_ids: OrderedIds | None = None
    workspace_id: Id | None = None
    context: Context | None = None
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = NOT_NULLABLE
    team_id: TeamId = None
    ends_when_done: bool = NOT_NULLABLE
    vault_ids: UnsupportedList = None
    budget: Unsupported = None


class ListDeployments(Parameters):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    page: Text | None = None
    agent_id: Text | None = None
    status: Annotated[
        Literal["active", "paused"] | None, Field(description="Cannot be combined with `include_archived`.")
    ] = None
    include_archived: bool = False
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None


class ListRuns(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    page: Text | None = None
    deployment_id: Text | None = None
    has_error: bool | None = None
    trigger_type: Literal["schedule", "manual"] | None = None
    created_at_gt: Annotated[UtcTime | None, Field(alias="created_at[gt]")] = None
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lt: Annotated[UtcTime | None, Field(alias="created_at[lt]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None


class PreviewRuns(Parameters):
    expression: Annotated[
        Text, StringConstraints(max_length=cron.MAX_EXPRESSION), Field(description="As in `schedule` of a deployment.")
    ]
    timezone: Annotated[
        Text, StringConstraints(max_length=64), Field(description="An IANA time zone, such as `Europe/Berlin`.")
    ]

    def to_schedule(self) -> CronSchedule:
        return CronParams(type="cron", expression=self.expression, timezone=self.timezone).to_schedule()


class AgentReferenceResponse(ResponseModel):
    type: Literal["agent"]
    id: str
    version: int


class ScheduleResponse(ResponseModel):
    type: Literal["cron"]
    expression: str
    timezone: str
    last_run_at: datetime | None
    upcoming_runs_at: list[datetime]


class SchedulePreviewResponse(ResponseModel):
    type: Literal["schedule_preview"]
    expression: str
    timezone: str
    upcoming_runs_at: list[datetime]


class DeploymentResponse(ResponseModel):
    id: str
    type: Literal["deployment"]
    name: str
    description: str | None
    agent: AgentReferenceResponse
    environment_id: str
    initial_events: list[dict[str, JsonValue]]
    steps: list[dict[str, JsonValue]]
    resources: list[dict[str, JsonValue]]
    schedule: ScheduleResponse | None
    status: Literal["active", "paused"]
    paused_reason: dict[str, JsonValue] | None
    overlap_policy: _Overlap
    catch_up_seconds: int
    metadata: dict[str, str]
    vault_ids: list[str]
    runs_as: str
    project_ids: list[str]
    ends_when_done: bool
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class RunErrorResponse(ResponseModel):
    type: str
    message: str


class DeploymentRunResponse(ResponseModel):
    id: str
    type: Literal["deployment_run"]
    deployment_id: str
    agent: AgentReferenceResponse
    session_id: str | None
    error: RunErrorResponse | None
    skipped: bool
    trigger_context: dict[str, JsonValue]
    created_at: datetime


def serialize_deployment(deployment: Deployment) -> JsonObject:
    definition = deployment.definition
    template = definition.template
    return {
        "id": deployment.id,
        "type": "deployment",
        "name": definition.name,
        "description": definition.description,
        "agent": serialize_agent_reference(template.agent["id"], template.agent["version"]),
        "environment_id": definition.environment_id,
        "initial_events": [{"type": "user.message", **body} for body in template.messages],
        "steps": [_serialize_step(step, overrides) for step, overrides in template.steps],
        "resources": [{name: one[name] for name in ("type", "file_id", "mount_path")} for one in template.resources],
        "schedule": _serialize_schedule(deployment),
        "status": "paused" if deployment.is_paused else "active",
        "paused_reason": deployment.paused_reason if deployment.is_paused else None,
        "overlap_policy": definition.overlap_policy.value,
        "catch_up_seconds": definition.catch_up_seconds,
        "metadata": {**definition.metadata},
        "vault_ids": [],
        "project_ids": [*template.project_ids],
        "workspace_id": template.workspace_id,
        "context": template.context,
        "permissions": serialize_permissions(template.permissions),
        "ends_when_done": template.ends_when_done,
        **serialize_audience(definition.audience),
        "owner_id": deployment.owner_id,
        "runs_as": deployment.principal_id,
        "created_at": timestamp(deployment.created_at),
        "updated_at": timestamp(deployment.updated_at),
        "archived_at": optional_timestamp(deployment.archived_at),
    }


def serialize_run(run: DeploymentRun) -> JsonObject:
    trigger: JsonObject = {"type": "manual"}
    if run.scheduled_at is not None:
        trigger = {"type": "schedule", "scheduled_at": timestamp(run.scheduled_at)}
    return {
        "id": run.id,
        "type": "deployment_run",
        "deployment_id": run.deployment_id,
        "agent": serialize_agent_reference(run.agent_id, run.agent_version),
        "session_id": run.session_id,
        "error": None if run.error is None else run.error.dump(),
        "skipped": run.skipped,
        "trigger_context": trigger,
        "created_at": timestamp(run.created_at),
    }


def serialize_preview(schedule: CronSchedule) -> JsonObject:
    return {
        "type": "schedule_preview",
        "expression": schedule.expression,
        "timezone": schedule.timezone,
        "upcoming_runs_at": _find_upcoming(schedule),
    }


def _serialize_step(step: StepDefinition, overrides: JsonObject) -> JsonObject:
    """Serializes a step as a client can send it."""
    fields: JsonObject = {"kind": step.kind.value, "name": step.name, **step.dump()}
    if overrides:
        fields |= overrides if step.kind is StepKind.SHELL else {"overrides": overrides}
    return fields


def serialize_agent_reference(agent_id: JsonValue, version: JsonValue) -> JsonObject:
    return {"type": "agent", "id": agent_id, "version": version}


def _serialize_schedule(deployment: Deployment) -> JsonObject | None:
    schedule = deployment.definition.schedule
    if schedule is None:
        return None
    return {
        "type": "cron",
        "expression": schedule.expression,
        "timezone": schedule.timezone,
        "last_run_at": optional_timestamp(deployment.last_run_at),
        "upcoming_runs_at": [] if deployment.archived_at is not None else _find_upcoming(schedule),
    }


def _find_upcoming(schedule: CronSchedule) -> list[Json]:
    return [timestamp(time) for time in schedule.find_times(datetime.now(UTC), deployments.MAX_UPCOMING)]
