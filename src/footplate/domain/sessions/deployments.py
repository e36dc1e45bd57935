"""Deployments: what a session is created with, and the schedule that creates one at each of its times.

A *run* of a deployment records that a session was created, or why not. The store decides about each run in the
transaction that creates the session, so a time of the schedule that fires twice creates one session. The engine only
says when a time has come.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.steps import StepDefinition

MAX_MESSAGES: Final = 50
MAX_STEPS: Final = 100
MAX_UPCOMING: Final = 5
MAX_SCHEDULES: Final = 1_000
"""Deployments with a schedule that an organisation can have at a time."""
DEFAULT_CATCH_UP_SECONDS: Final = 600
MIN_CATCH_UP_SECONDS: Final = 10
MAX_CATCH_UP_SECONDS: Final = 31 * 24 * 3600
MAX_DEFINITION_BYTES: Final = 1_000_000

CREATED: Final = "deployment.created"
UPDATED: Final = "deployment.updated"
PAUSED: Final = "deployment.paused"
UNPAUSED: Final = "deployment.unpaused"
ARCHIVED: Final = "deployment.archived"
RUN_SUCCEEDED: Final = "deployment_run.succeeded"
RUN_FAILED: Final = "deployment_run.failed"
EVENT_PREFIXES: Final = ("deployment.", "deployment_run.")
"""Changes of deployments in the feed of the organisation."""


class OverlapPolicy(StrEnum):
    """What happens at a time of the schedule if the session of an earlier run still works or waits for a person."""

    ALLOW_ALL = "allow_all"
    """The run starts."""
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    """The run starts when the earlier one has finished. Further runs are skipped until then."""
    CANCEL_OTHER = "cancel_other"
    """The earlier session ends as cancelled, and the run starts."""


class RunErrorType(StrEnum):
    """Why a run has created no session, in the words of the reference API."""

    AGENT_ARCHIVED = "agent_archived_error"
    ENVIRONMENT_ARCHIVED = "environment_archived_error"
    ENVIRONMENT_NOT_FOUND = "environment_not_found_error"
    FILE_NOT_FOUND = "file_not_found_error"
    RESOURCE_NOT_FOUND = "session_resource_not_found_error"
    """A project, a workspace or a team."""
    LIMIT_REACHED = "session_rate_limited_error"
    REJECTED = "session_creation_rejected_error"
    UNKNOWN = "unknown_error"
    """Also for a member who is disabled or may not create sessions any more: the reference API has no word for it."""

    @property
    def pauses_schedule(self) -> bool:
        """Whether the next run would fail too, until a person changes something."""
        return self not in {RunErrorType.LIMIT_REACHED, RunErrorType.REJECTED}


@dataclass(frozen=True, slots=True)
class RunError:
    type: RunErrorType
    message: str

    def dump(self) -> JsonObject:
        return {"type": self.type.value, "message": self.message}


MANUAL_PAUSE: Final[JsonObject] = {"type": "manual"}


def pause_after(error: RunError) -> JsonObject:
    """Return why a schedule is paused after a run that failed."""
    return {"type": "error", "error": error.dump()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTemplate:
    """What each session of a deployment is created with."""

    agent: JsonObject
    """The agent as a session stores it."""
    messages: Sequence[JsonObject] = ()
    """The bodies of the first messages."""
    steps: Sequence[tuple[StepDefinition, JsonObject]] = ()
    """The steps of its queue, each with the overrides of its turn. They follow the messages."""
    resources: Sequence[JsonObject] = ()
    """Files, in the form of the API."""
    context: JsonObject = field(default_factory=dict)
    project_ids: Sequence[str] = ()
    workspace_id: str | None = None
    permissions: JsonObject = field(default_factory=dict)
    ends_when_done: bool = False

    def dump(self) -> JsonObject:
        return {
            "agent": self.agent,
            "messages": [*self.messages],
            "steps": [
                {"kind": step.kind.value, "name": step.name, "definition": step.dump(), "overrides": overrides}
                for step, overrides in self.steps
            ],
            "resources": [*self.resources],
            "context": self.context,
            "project_ids": [*self.project_ids],
            "workspace_id": self.workspace_id,
            "permissions": self.permissions,
            "ends_when_done": self.ends_when_done,
        }

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "SessionTemplate":
        workspace_id, projects = stored.get("workspace_id"), stored.get("project_ids")
        return cls(
            agent=as_object(stored.get("agent")),
            messages=as_objects(stored.get("messages")),
            steps=[_load_step(one) for one in as_objects(stored.get("steps"))],
            resources=as_objects(stored.get("resources")),
            context=as_object(stored.get("context")),
            project_ids=[str(one) for one in projects] if isinstance(projects, list) else (),
            workspace_id=workspace_id if isinstance(workspace_id, str) else None,
            permissions=as_object(stored.get("permissions")),
            ends_when_done=stored.get("ends_when_done") is True,
        )


def _load_step(stored: JsonObject) -> tuple[StepDefinition, JsonObject]:
    name = stored["name"]
    definition = StepDefinition.load(
        str(stored["kind"]), name if isinstance(name, str) else None, as_object(stored["definition"])
    )
    return definition, as_object(stored["overrides"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentDefinition:
    """The fields of a deployment that clients set."""

    name: str
    environment_id: str
    template: SessionTemplate
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    schedule: CronSchedule | None = None
    """None: only clients start runs."""
    overlap_policy: OverlapPolicy = OverlapPolicy.ALLOW_ALL
    catch_up_seconds: int = DEFAULT_CATCH_UP_SECONDS
    """How late a run may start, for example after an outage."""
    audience: Audience = EVERYONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    id: str
    organisation: str
    definition: DeploymentDefinition
    principal_id: str
    """In whose name the schedule starts runs: who created, changed or resumed it last."""
    owner_id: str
    paused_reason: JsonObject | None
    revision: int
    last_run_at: datetime | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None

    @property
    def is_paused(self) -> bool:
        return self.paused_reason is not None and self.archived_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRun:
    id: str
    deployment_id: str
    agent_id: str
    agent_version: int
    scheduled_at: datetime | None
    """None: a client started it."""
    session_id: str | None
    error: RunError | None
    skipped: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFilter:
    agent_id: str | None = None
    is_paused: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    deployment_id: str | None = None
    has_error: bool | None = None
    is_scheduled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """The state of a deployment from which its schedule in Temporal is built."""

    organisation: str
    deployment_id: str
    revision: int
    is_applied: bool
    """Whether the schedule in Temporal has this revision."""
    schedule: CronSchedule | None
    """None: there must be no schedule in Temporal, because the deployment has none or is archived."""
    catch_up_seconds: int
    is_paused: bool


CheckContext = Callable[[JsonObject], None]
"""Raises if a session may not be created with this context any more."""


class DeploymentReads(Protocol):
    async def deployment(self, principal: Principal, deployment_id: str) -> Deployment: ...
    async def deployments(self, principal: Principal, page: Page, where: DeploymentFilter) -> Sequence[Deployment]: ...
    async def deployment_run(self, principal: Principal, run_id: str) -> DeploymentRun: ...
    async def deployment_runs(self, principal: Principal, page: Page, where: RunFilter) -> Sequence[DeploymentRun]: ...
