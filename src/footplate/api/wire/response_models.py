"""Response models for the OpenAPI document and for tests. At run time, responses are built as plain dictionaries."""

from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from footplate.domain.sessions.turns import ActivityState, SessionState, StallReason

T = TypeVar("T")


class ResponseModel(BaseModel):
    """Base of response models. Clients must accept additional fields: changes under /v1 are additive."""

    model_config = ConfigDict(extra="allow")


class ModelAnswer(ResponseModel):
    id: str
    speed: Literal["standard"] | None = None


class PolicyAnswer(ResponseModel):
    type: Literal["always_allow", "always_ask", "auto"]


class ToolDefaultAnswer(ResponseModel):
    enabled: bool
    permission_policy: PolicyAnswer


class ToolConfigAnswer(ToolDefaultAnswer):
    name: str
    type: str


class ToolsetAnswer(ResponseModel):
    type: Literal["agent_toolset_20260401"]
    configs: list[ToolConfigAnswer]
    default_config: ToolDefaultAnswer
    ask_user: bool | None = None
    spawn_sessions: bool | None = None


class McpToolConfigAnswer(ToolDefaultAnswer):
    name: str


class McpToolsetAnswer(ResponseModel):
    type: Literal["mcp_toolset"]
    mcp_server_name: str
    configs: list[McpToolConfigAnswer]
    default_config: ToolDefaultAnswer


class ServerToolDefault(ResponseModel):
    enabled: bool
    permission_policy: PolicyAnswer | None = None


class ServerToolConfig(ServerToolDefault):
    name: str


class ServerToolsetResponse(ResponseModel):
    name: str
    settings: dict[str, JsonValue] | None = None
    configs: list[ServerToolConfig]
    default_config: ServerToolDefault


class McpServerAnswer(ResponseModel):
    type: Literal["url"]
    name: str
    url: str


class CustomToolAnswer(ResponseModel):
    type: Literal["custom"]
    name: str
    description: str
    input_schema: dict[str, JsonValue]


class PermissionsAnswer(ResponseModel):
    deny: list[str] = []
    ask: list[str] = []
    allow: list[str] = []
    hooks: dict[str, JsonValue] | None = None


class Definition(ResponseModel):
    id: str
    type: Literal["agent"]
    name: str
    version: int
    description: str | None
    model: ModelAnswer
    system: str | None
    tools: list[Annotated[ToolsetAnswer | McpToolsetAnswer | CustomToolAnswer, Field(discriminator="type")]]
    mcp_servers: list[McpServerAnswer]
    skills: list[JsonValue]
    multiagent: JsonValue
    execution_identity: dict[str, JsonValue]
    harness: str | None = None
    role: str | None = None
    goal: str | None = None
    backstory: str | None = None
    limits: dict[str, JsonValue] | None = None
    model_parameters: dict[str, JsonValue] | None = None
    permissions: PermissionsAnswer | None = None
    server_toolsets: list[ServerToolsetResponse] | None = None
    shell_mode: Literal["host", "container"] | None = None


class Dated(ResponseModel):
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class Agent(Definition, Dated):
    metadata: dict[str, str]


class SessionAgent(Definition):
    """The agent as it was when the session was created, including overrides."""


class Backend(ResponseModel):
    type: Literal["backend"]
    name: str
    is_default: Annotated[bool, Field(description="Whether sessions that choose no backend run on it.")]
    workers: Annotated[int, Field(description="Running workers that offer it.")]


class Environment(Dated):
    id: str
    type: Literal["environment"]
    name: str
    description: str | None
    config: dict[str, JsonValue]
    metadata: dict[str, str]
    scope: Literal["organization"]


class UsageAnswer(ResponseModel):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation: dict[str, int]
    requests: int
    cost_microusd: int | None = None


class TotalUsage(ResponseModel):
    """The usage of a session and of all sessions below it."""

    type: Literal["session_usage"]
    session_id: str
    sessions: Annotated[int, Field(description="How many sessions it is the sum of.")]
    usage: UsageAnswer


class StatsAnswer(ResponseModel):
    active_seconds: float
    duration_seconds: float


class ForkedFrom(ResponseModel):
    session_id: str
    event_id: str | None
    position: int


class BaseAnswer(ResponseModel):
    """The commit and branch that a project's tree started from."""

    commit: str | None
    branch: str


class FileResource(ResponseModel):
    id: str
    type: Literal["file"]
    file_id: str
    mount_path: str
    created_at: str
    updated_at: str


class SessionActivity(ResponseModel):
    """What a session is doing, or how its last turn ended. `status` is `idle` in most of these states."""

    state: ActivityState
    reason: StallReason | None
    """Why the session is stalled, is queued because of a limit, or waits for sessions. Otherwise null."""
    message: Annotated[str | None, Field(description="What it does, or why it does not move, in words.")]
    since: Annotated[datetime | None, Field(description="Since when. Null if it is at rest.")]


class SessionCounts(ResponseModel):
    type: Literal["session_counts"]
    total: int
    states: dict[SessionState, int]


class SessionProject(ResponseModel):
    id: str
    name: Annotated[str | None, Field(description="Null: the project was deleted.")]


class SessionOwner(ResponseModel):
    id: str | None
    name: str | None


class SessionEnd(ResponseModel):
    outcome: Literal["completed", "failed", "cancelled", "expired"]
    reason: str | None
    ended_by: str | None
    """Null: it ended by itself, or by a policy."""
    ended_at: str


class ToolCallTotals(ResponseModel):
    calls: int
    failed: int
    success_rate: float | None
    seconds: float
    average_seconds: float | None


class Session(Dated):
    id: str
    type: Literal["session"]
    agent: SessionAgent
    environment_id: str
    backend: Annotated[
        str | None, Field(description="The backend that was chosen for it. Null: the operator's default.")
    ] = None
    status: Literal["idle", "running", "rescheduling", "terminated"]
    state: SessionState
    activity: SessionActivity
    title: str | None
    metadata: dict[str, str]
    context: dict[str, JsonValue]
    resources: list[FileResource]
    vault_ids: list[str]
    outcome_evaluations: list[JsonValue]
    budget: JsonValue
    deployment_id: str | None
    stats: StatsAnswer
    usage: UsageAnswer
    interactions: Annotated[int, Field(description="Requests to models, of all turns.")] = 0
    last_interaction_at: datetime | None = None
    forked_from: ForkedFrom | None = None
    mode: Literal["interactive", "background"] = "interactive"
    project_ids: list[str] = []
    projects: list[SessionProject] = []
    workspace_id: str | None = None
    bases: dict[str, BaseAnswer] = {}
    permissions: PermissionsAnswer = PermissionsAnswer()
    created_by: str | None = None
    owner: SessionOwner | None = None
    visibility: Literal["private", "team", "organisation"] = "organisation"
    team_id: str | None = None
    conversation_id: Annotated[
        str | None, Field(description="The harness's own ID of the conversation. Claude Code calls it session ID.")
    ] = None
    parent_id: Annotated[str | None, Field(description="The session that started it.")] = None
    group_id: Annotated[str | None, Field(description="The sessions that were started together.")] = None
    ends_when_done: bool = False
    end: SessionEnd | None = None


class Project(Dated):
    id: str
    type: Literal["project"]
    name: str
    path: str | None
    url: str | None
    branch: str | None
    trust: Literal["nothing", "instructions", "all"]
    permissions: PermissionsAnswer = PermissionsAnswer()
    setup: str | None
    cached_directories: list[str] | None
    metadata: dict[str, str]


class FileScope(ResponseModel):
    """The session that a file is an output of."""

    type: Literal["session"]
    id: str


class File(ResponseModel):
    id: str
    type: Literal["file"]
    filename: str
    mime_type: str
    size_bytes: int
    created_at: str
    expires_at: str | None
    downloadable: Literal[True]
    scope: FileScope | None
    visibility: Literal["private", "team", "organisation"] = "organisation"
    team_id: str | None = None


class Workspace(Dated):
    id: str
    type: Literal["workspace"]
    name: str
    project_ids: list[str]
    metadata: dict[str, str]


class ThreadAgent(ResponseModel):
    """The agent of a thread: the session's agent or a subagent. Fields that only sessions have are omitted."""

    id: str
    type: Literal["agent"]
    name: str
    version: int


class Thread(Dated):
    id: str
    type: Literal["session_thread"]
    session_id: str
    parent_thread_id: str | None
    agent: ThreadAgent
    status: Literal["idle", "running", "rescheduling", "terminated"]
    stats: StatsAnswer
    usage: UsageAnswer | None


class Event(ResponseModel):
    id: str
    type: str
    processed_at: datetime | None


class TurnMetrics(ResponseModel):
    duration_seconds: float | None
    attempts: int
    retries: int
    handovers: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost_microusd: int | None


class TurnResult(ResponseModel):
    session_id: str
    success: bool
    text: str
    data: dict[str, JsonValue]
    error_message: str | None
    metrics: TurnMetrics


class Turn(ResponseModel):
    id: str
    type: Literal["turn"]
    session_id: str
    status: str
    attempt: int
    input_event_id: str
    first_seq: int
    config: dict[str, JsonValue]
    usage: UsageAnswer
    commit: Annotated[
        str | None,
        Field(description="The commit that was checked out in the working directory at the end of the turn."),
    ]
    commits: Annotated[dict[str, str], Field(description="The same for each project, by its ID.")]
    tools: Annotated[dict[str, ToolCallTotals], Field(description="The calls by tool, when the turn has ended.")] = {}
    last_interaction_at: datetime | None = None
    result: TurnResult
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class StepResult(ResponseModel):
    """What a step did. `text` is the agent's last message, or the output of a command."""

    status: str
    stdout: str
    stderr: str
    exit_code: int | None
    duration_ms: int | None
    error_message: str | None
    text: str
    sessions: Annotated[
        list[dict[str, JsonValue]] | None,
        Field(
            description="The sessions of a parallel step: `index`, `name`, `session_id`, `outcome`, `text`, `error`."
        ),
    ] = None


class Step(ResponseModel):
    """A step has `content`, `command`, `instructions`, `sessions`, or `into` or `branch`, according to its kind."""

    id: str
    type: Literal["step"]
    session_id: str
    kind: Literal["prompt", "shell", "external", "parallel", "merge", "push", "terminal"]
    name: str | None
    state: Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]
    waiting_for: Annotated[
        Literal["action", "sessions", "retry"] | None,
        Field(description="`action`: an approval or a result. `retry`: the time of the next attempt."),
    ]
    sort_key: Annotated[int, Field(description="Steps run in this order.")]
    condition: str | None
    on_failure: Literal["stop", "continue", "retry"]
    max_attempts: int
    timeout_seconds: float | None
    ends_session: bool
    is_message: Annotated[bool, Field(description="Whether it was sent as an event. It can then not be edited.")]
    attempt: int
    turn_id: str | None
    result: StepResult | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class Playback(ResponseModel):
    type: Literal["session_playback"]
    session_id: str
    playing: bool
    next_steps: Annotated[int, Field(description="How many steps a paused session may still start.")]
    pause_reason: Literal["requested", "step_failed", "group"] | None


class FileChangeAnswer(ResponseModel):
    path: Annotated[str, Field(description="Bytes that are not valid UTF-8 are escaped as `\\xNN`.")]
    old_path: Annotated[str | None, Field(description="The previous path of a renamed file.")]
    status: Literal["added", "modified", "deleted", "renamed", "type_changed"]
    added: Annotated[int | None, Field(description="Number of added lines; null for a binary file.")]
    deleted: int | None
    binary: bool


class StateChanges(ResponseModel):
    count: Annotated[int, Field(description="Number of files.")]
    files: list[FileChangeAnswer]
    added: int
    deleted: int


class ChangesByState(ResponseModel):
    committed: Annotated[
        StateChanges, Field(description="From the commit at the start of the diff to the one at its end.")
    ]
    staged: Annotated[StateChanges, Field(description="From that commit to the index.")]
    unstaged: Annotated[StateChanges, Field(description="From the index to the files that it has.")]
    untracked: Annotated[StateChanges, Field(description="Files that the index does not have.")]


class TreeDiffAnswer(ResponseModel):
    project_id: Annotated[str | None, Field(description="Null for the session's scratch directory.")]
    name: str
    files: list[FileChangeAnswer]
    added: Annotated[int, Field(description="Total number of added lines.")]
    deleted: int
    left_out: Annotated[
        list[str], Field(description="Files that are in the directory but were not compared, with the reason.")
    ]
    states: Annotated[
        ChangesByState | None,
        Field(description="The changes by their state in git, as `git status` shows it; null if it is not known."),
    ]


class Diff(ResponseModel):
    type: Literal["diff"]
    session_id: str
    trees: list[TreeDiffAnswer]


class SessionLeft(ResponseModel):
    type: Literal["session_left"]
    session_id: str
    project_id: str
    status: Annotated[
        Literal["merged", "fast_forwarded", "pushed", "unchanged"],
        Field(description="`unchanged`: the branch already had the commit."),
    ]
    branch: str
    commit: Annotated[str, Field(description="The branch's commit after the operation.")]
    before: Annotated[str | None, Field(description="The branch's commit before the operation; null for a new branch.")]


class TerminalRecording(ResponseModel):
    """What a shell on a session's terminal showed. `id`: the ID of its call in the log."""

    id: str
    type: Literal["terminal_recording"]
    session_id: str
    size_bytes: int
    created_at: str


class Listing(ResponseModel, Generic[T]):
    data: list[T]
    next_page: str | None


class FileListing(Listing[File]):
    omitted: Annotated[
        list[str] | None,
        Field(description="With `scope_id`: the files that are not stored, each with the reason; otherwise null."),
    ] = None


class ListedSession(Session):
    is_pinned: Annotated[bool, Field(description="Whether you have pinned it.")]


class SessionPin(ResponseModel):
    type: Literal["session_pin"]
    session_id: str
    is_pinned: bool


class SessionListing(Listing[ListedSession]):
    prev_page: str | None


class SentEvents(ResponseModel):
    data: list[Event]


class Deleted(ResponseModel):
    id: str
    type: Literal["session_deleted", "environment_deleted", "file_deleted", "session_resource_deleted"]


class ErrorDetail(ResponseModel):
    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "conflict_error",
        "rate_limit_error",
        "timeout_error",
        "api_error",
        "overloaded_error",
    ]
    message: str
    title: str
    docs: str
    help: str | None = None
    field: str | None = None
    details: dict[str, JsonValue] | None = None


class Error(ResponseModel):
    type: Literal["error"]
    error: ErrorDetail
    request_id: str


class Health(ResponseModel):
    status: Literal["ok", "degraded", "unavailable"]
    parts: dict[str, str] = {}
