"""Wire models of triggers and the deliveries to them, a Footplate extension of the reference API."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from footplate.api.wire.agent_and_environment_queries import PageSize
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
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.api.wire.session.deployments import (
    AgentReferenceResponse,
    Description,
    RunErrorResponse,
    serialize_agent_reference,
)
from footplate.api.wire.session.sessions import AgentChoice
from footplate.api.wire.session.steps import (
    MAX_STEPS,
    ExternalStep,
    MergeStep,
    ParallelStep,
    PromptStep,
    PushStep,
    ShellStep,
    check_command_text,
)
from footplate.api.wire.visibility import TeamId, VisibilityName, serialize_audience
from footplate.domain.json import JsonObject
from footplate.domain.sessions import step_references, triggers
from footplate.domain.sessions.triggers import Trigger, TriggerDelivery

_Outcome = Literal["session_created", "steps_added", "ignored", "failed"]


def _check_command(command: str) -> str:
    return check_command_text(command, with_payload=True)


class TriggerShellStep(ShellStep):
    """A command, in which references to the payload are replaced too, each by one quoted word."""

    command: Annotated[Text, StringConstraints(max_length=50_000), AfterValidator(_check_command)]


TriggerStep: TypeAlias = Annotated[
    PromptStep | TriggerShellStep | ExternalStep | ParallelStep | MergeStep | PushStep, Field(discriminator="kind")
]
TriggerSteps = Annotated[
    list[TriggerStep],
    Field(
        min_length=1,
        max_length=MAX_STEPS,
        description="The steps of each new session, or those that are added to the session. `${payload.KEY}` in their "
        "texts is replaced by a value of the delivery.",
    ),
]
Title = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=triggers.MAX_TITLE),
    Field(description="The title of new sessions, with `${payload.KEY}`. Default: the name of the trigger."),
]
TriggerCondition = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=step_references.MAX_CONDITION),
    Field(description="A CEL expression over `payload`. If it is false, the delivery is ignored."),
]
PerMinute = Annotated[
    int, Field(ge=1, le=triggers.MAX_PER_MINUTE, description="How many deliveries are accepted in a minute.")
]


class TriggerCreate(Body):
    name: Name
    steps: TriggerSteps
    session_id: Annotated[
        Id | None, Field(description="The session that gets the steps. Without it, each delivery creates a session.")
    ] = None
    agent: Annotated[AgentChoice | None, Field(description="Required without `session_id`.")] = None
    environment_id: Annotated[Id | None, Field(description="Required without `session_id`.")] = None
    title: Title | None = None
    condition: TriggerCondition | None = None
    max_per_minute: PerMinute = triggers.DEFAULT_PER_MINUTE
    description: Description | None = None
    metadata: Metadata = Field(default_factory=dict)
    project_ids: OrderedIds | None = None
    workspace_id: Id | None = None
    context: Context | None = None
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = "organisation"
    team_id: TeamId = None
    ends_when_done: bool = False


class TriggerUpdate(Body):
    """Omitted fields keep their values, lists are replaced, and metadata is merged by key."""

    name: Name = NOT_NULLABLE
    steps: TriggerSteps = NOT_NULLABLE
    agent: AgentChoice = NOT_NULLABLE
    environment_id: Id = NOT_NULLABLE
    title: Title | None = None
    condition: TriggerCondition | None = None
    max_per_minute: PerMinute = NOT_NULLABLE
    description: Description | None = None
    metadata: MetadataPatch | None = None
    project_ids: OrderedIds | None = None
    workspace_id: Id | None = None
    context: Context | None = None
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = NOT_NULLABLE
    team_id: TeamId = None
    ends_when_done: bool = NOT_NULLABLE
    paused: Annotated[bool, Field(description="A paused trigger refuses deliveries with 409.")] = NOT_NULLABLE


class ListTriggers(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False


class ListTriggerDeliveries(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    outcome: _Outcome | None = None


class TriggerResponse(ResponseModel):
    id: str
    type: Literal["trigger"]
    name: str
    description: str | None
    session_id: str | None
    agent: AgentReferenceResponse | None
    environment_id: str | None
    title: str | None
    steps: list[dict[str, JsonValue]]
    condition: str | None
    max_per_minute: int
    status: Literal["active", "paused"]
    metadata: dict[str, str]
    runs_as: str
    old_secret_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class NewTriggerResponse(TriggerResponse):
    secret: str
    """The secret that signs deliveries. It cannot be read again."""


class TriggerReceiptResponse(ResponseModel):
    """What the sender of a delivery learns."""

    id: str
    type: Literal["trigger_delivery"]
    trigger_id: str
    delivery_id: str
    outcome: _Outcome
    session_id: str | None
    created_at: datetime


class TriggerDeliveryResponse(TriggerReceiptResponse):
    error: RunErrorResponse | None
    attempts: int
    attempted_at: datetime


def serialize_trigger(trigger: Trigger) -> JsonObject:
    definition = trigger.definition
    template = definition.template
    return {
        "id": trigger.id,
        "type": "trigger",
        "name": definition.name,
        "description": definition.description,
        "session_id": definition.session_id,
        "agent": serialize_agent_reference(template.agent["id"], template.agent["version"]) if template.agent else None,
        "environment_id": definition.environment_id,
        "title": definition.title,
        "steps": [{"kind": step.kind.value, "name": step.name, **step.dump()} for step, _ in template.steps],
        "condition": definition.condition,
        "max_per_minute": definition.max_per_minute,
        "status": "paused" if definition.is_paused else "active",
        "metadata": {**definition.metadata},
        "project_ids": [*template.project_ids],
        "workspace_id": template.workspace_id,
        "context": template.context,
        "permissions": serialize_permissions(template.permissions),
        "ends_when_done": template.ends_when_done,
        **serialize_audience(definition.audience),
        "owner_id": trigger.owner_id,
        "runs_as": trigger.principal_id,
        "old_secret_expires_at": optional_timestamp(trigger.old_secret_expires_at),
        "created_at": timestamp(trigger.created_at),
        "updated_at": timestamp(trigger.updated_at),
        "archived_at": optional_timestamp(trigger.archived_at),
    }


def serialize_receipt(delivery: TriggerDelivery) -> JsonObject:
    return {
        "id": delivery.id,
        "type": "trigger_delivery",
        "trigger_id": delivery.trigger_id,
        "delivery_id": delivery.delivery_id,
        "outcome": delivery.outcome.value,
        "session_id": delivery.session_id,
        "created_at": timestamp(delivery.created_at),
    }


def serialize_delivery(delivery: TriggerDelivery) -> JsonObject:
    return {
        **serialize_receipt(delivery),
        "error": None if delivery.error is None else delivery.error.dump(),
        "attempts": delivery.attempts,
        "attempted_at": timestamp(delivery.attempted_at),
    }
