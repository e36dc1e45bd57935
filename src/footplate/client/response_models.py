"""Models of the server's responses. Unknown fields are preserved, never rejected."""

from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
SessionStatus = Literal["idle", "running", "rescheduling", "terminated"]
TurnStatus = Literal[
    "pending", "running", "awaiting_tool_results", "completed", "failed", "interrupted", "limit_reached", "timed_out"
]
Visibility = Literal["private", "team", "organisation"]
SessionState = Literal["running", "needs_you", "queued", "paused", "failed", "done"]
ActivityState = Literal[
    "new",
    "queued",
    "running",
    "retrying",
    "waiting_for_approval",
    "waiting_for_answer",
    "waiting_for_result",
    "paused",
    "stalled",
    "completed",
    "failed",
    "interrupted",
    "limit_reached",
    "timed_out",
    "ended",
]


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    def wire(self) -> dict[str, Any]:
        """Returns the response as the server sent it: fields that were absent are not filled with defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class ModelRef(ResponseModel):
    id: str


class AgentDefinition(ResponseModel):
    """An agent's definition: the current one, or the copy that a session made of it."""

    id: str
    name: str
    version: int
    model: ModelRef
    system: str | None = None
    tools: list[dict[str, Any]] = []
    server_toolsets: list[dict[str, Any]] | None = None
    harness: str | None = None
    limits: dict[str, Any] | None = None
    shell_mode: Literal["host", "container"] | None = None


class Agent(AgentDefinition):
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class Member(ResponseModel):
    id: str
    kind: str
    name: str
    roles: list[str]
    created_at: datetime
    disabled_at: datetime | None = None
    successor_id: str | None = None
    """The member who continues the work of this disabled member."""
    email: str | None = None
    """The email that the identity provider reported."""
    sign_in_methods: list[str] = []
    """`oidc`: it has signed in through the identity provider. `api_key`: it has a valid API key."""


class Team(ResponseModel):
    id: str
    name: str
    member_ids: list[str]
    created_at: datetime


class ModelInfo(ResponseModel):
    id: str
    """The name for an agent's `model`: `connection/model`."""
    display_name: str
    connection: str
    provider: str


class Limit(ResponseModel):
    name: str
    scope: Literal["organisation", "each_member", "member"]
    member_id: str | None = None
    member_name: str | None = None
    value: int | None = None
    """None: unlimited."""
    used: float | None = None
    """None: not counted. Requests and streams are counted only while they have a limit."""
    own_value: int | None = None
    """What the organisation's administrators have set for exactly this scope. None: nothing."""
    operator_value: int | None = None
    """The limit of the server's operator, which cannot be exceeded. None: there is none."""


class ApiKey(ResponseModel):
    id: str
    name: str
    member_id: str
    member_name: str
    roles: list[str]
    project_ids: list[str] | None = None
    """The projects that the key is restricted to. None: all."""
    created_at: datetime
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    secret: str | None = None
    """The key itself, only in the response that creates or rotates it."""


class TeamReference(ResponseModel):
    id: str
    name: str


class Principal(ResponseModel):
    """Who the caller is."""

    id: str
    kind: str
    """`member`, `service`, or `api_key` for a key that belongs to no member."""
    name: str
    email: str | None = None
    role: str | None = None
    """The role that permits the most."""
    roles: list[str]
    permissions: list[str]
    organisation_id: str
    teams: list[TeamReference]
    project_ids: list[str] | None = None
    """The projects that the key is restricted to. None: all."""
    api_key_id: str | None = None
    """The API key of the request."""
    expires_at: datetime | None = None


class OneTimeLink(ResponseModel):
    """A link that signs one browser in, once."""

    code: str
    url: str
    expires_in: int


class DeviceAuthorization(ResponseModel):
    """A program that waits for a person to let it sign in."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    interval: int
    expires_in: int


class DeviceKey(ResponseModel):
    """The API key of a program that a person has let sign in."""

    api_key: str
    api_key_id: str
    member_id: str
    member_name: str
    organisation_id: str
    expires_at: datetime


class Backend(ResponseModel):
    name: str
    is_default: bool
    """Whether sessions that choose no backend run on it."""
    workers: int
    """Running workers that offer it."""


class Environment(ResponseModel):
    id: str
    name: str
    description: str | None = None
    config: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class Project(ResponseModel):
    id: str
    name: str
    path: str | None = None
    url: str | None = None
    branch: str | None = None
    trust: str = "nothing"
    setup: str | None = None
    """The command that prepares each session's tree."""
    cached_directories: list[str] | None = None
    """The ignored directories that are cached. None: common names."""
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class DisplayedField(ResponseModel):
    """A field of a call's input. Invisible, misleading and control characters in `text` are escaped: `<U+202E>`."""

    name: str
    kind: str
    """`text`, or `json` for a value that is not a string."""
    text: str


class DisplayedCall(ResponseModel):
    """A call as clients should show it to the person who decides: the complete input, escaped by the server."""

    name: str
    agent_name: str | None = None
    reason: str | None = None
    input: list[DisplayedField] = []
    whole: bool = True
    """False if the input is truncated: lists show its first 2,000 characters. `retrieve` returns all of it."""


class Approval(ResponseModel):
    """A tool call that requires approval: pending, decided or closed."""

    id: str
    status: str
    session_id: str
    session_title: str | None = None
    turn_id: str
    session_thread_id: str | None = None
    agent_name: str | None = None
    """The subagent that made the call; None for the agent itself."""
    name: str | None = None
    mcp_server_name: str | None = None
    input: dict[str, Any] | None = None
    display: DisplayedCall | None = None
    """None once the session's log has been archived."""
    permission: dict[str, Any] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    answered_by: str | None = None
    edited_input: dict[str, Any] | None = None
    """An edited input that a person proposed. Another person must approve it, with the same `updated_input`."""
    edited_by: str | None = None


class QuestionOption(ResponseModel):
    label: str
    description: str | None = None
    preview: str | None = None


class QuestionItem(ResponseModel):
    question: str
    header: str | None = None
    options: list[QuestionOption] = []
    multi_select: bool = False
    allow_free_text: bool = True


class Question(ResponseModel):
    """One or more questions of an agent that a person answers together."""

    id: str
    status: str
    session_id: str
    session_title: str | None = None
    turn_id: str
    questions: list[QuestionItem]
    """Empty once the session's log has been archived."""
    default: dict[str, str] | None = None
    """The answers that count if no one answers in time, by the questions' texts."""
    answers: dict[str, str] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    answered_by: str | None = None


class AuditEntry(ResponseModel):
    """An entry of the audit trail: a decision of the gate, a decision of a person, or a change of rules."""

    id: str
    kind: str
    created_at: datetime
    session_id: str | None = None
    turn_id: str | None = None
    event_id: str | None = None
    principal: str | None = None
    principal_name: str | None = None
    session_title: str | None = None
    outcome: str | None = None
    tool: str | None = None
    layer: str | None = None
    input_summary: str | None = None
    """The main argument of the call, at most 200 characters. None: the entry is not about a call, or the input is no
    longer stored."""
    input_hash: str | None = None
    content: dict[str, Any] | None = None
    content_hash: str


class AuditVerification(ResponseModel):
    entries: int
    batches: int
    unsealed: int
    head: str
    """The hash of the last batch. Save it elsewhere to detect later that the end of the trail was removed."""
    faults: list[str]


class Policy(ResponseModel):
    """An organisation's rules and hooks, and its requirements for approvers."""

    layer: str
    permissions: dict[str, Any]
    approvals: dict[str, Any]
    updated_by: str | None = None
    updated_at: datetime | None = None


class ImportedRules(ResponseModel):
    """A settings file converted to Footplate's rules, with notes on the parts that were omitted."""

    permissions: dict[str, Any]
    notes: list[str]


class ChangedCall(ResponseModel):
    """A past call for which the proposed rules give a different outcome."""

    event_id: str
    session_id: str
    turn_id: str | None = None
    created_at: datetime
    name: str
    mcp_server_name: str | None = None
    summary: str
    was: str
    would: str
    reason: str
    rule: str | None = None
    layer: str | None = None
    depends_on_links: bool = False
    hook: str | None = None


class PolicyReplay(ResponseModel):
    calls: int
    gone: int
    depend_on_links: int
    depend_on_hooks: int
    outcomes: dict[str, dict[str, int]]
    """Number of calls by their recorded outcome, then by the outcome under the proposed rules."""
    oldest_at: datetime | None = None
    data: list[ChangedCall]
    next_page: str | None = None


class Workspace(ResponseModel):
    id: str
    name: str
    project_ids: list[str] = []
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class FileScope(ResponseModel):
    """The session that a file is an output of."""

    type: str
    id: str


class File(ResponseModel):
    id: str
    filename: str
    mime_type: str
    size_bytes: int
    created_at: datetime
    expires_at: datetime | None = None
    visibility: Visibility = "organisation"
    team_id: str | None = None
    """The team that can see the file, if the visibility is `team`."""
    scope: FileScope | None = None
    """None: a client uploaded the file."""


class Usage(ResponseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    requests: int = 0
    cost_microusd: int | None = None
    """None if the model's price is unknown. Unknown does not mean free."""


class TotalUsage(ResponseModel):
    """The usage of a session and of all sessions below it."""

    session_id: str
    sessions: int
    """How many sessions it is the sum of."""
    usage: Usage


class ToolCalls(ResponseModel):
    """The calls of a tool in turns that have ended."""

    calls: int
    failed: int
    success_rate: float | None = None
    seconds: float
    average_seconds: float | None = None


class UsageLine(ResponseModel):
    """The usage of one group of turns. Fields that the report is not grouped by are None."""

    session: str | None = None
    day: date | None = None
    hour: datetime | None = None
    agent: str | None = None
    model: str | None = None
    harness: str | None = None
    key: str | None = None
    member: str | None = None
    member_name: str | None = None
    project: str | None = None
    parameters: dict[str, Any] | None = None
    status: str | None = None
    tool: str | None = None
    turns: int
    statuses: dict[str, int] = {}
    success_rate: float | None = None
    """The share of ended turns that completed."""
    iterations: int = 0
    """Requests to models."""
    seconds: float
    average_seconds: float | None = None
    usage: Usage
    unpriced_turns: int = 0
    """Turns whose price is unknown. The cost does not include them."""
    tool_calls: ToolCalls | None = None
    """Only in a report by tool. The other figures are those of the turns that called the tool."""


class UsageReport(ResponseModel):
    data: list[UsageLine]
    start: Annotated[datetime, Field(alias="from")]
    end: Annotated[datetime, Field(alias="to")]
    has_more: bool = False


class ForkedFrom(ResponseModel):
    session_id: str
    event_id: str | None = None
    """None if the session had no event yet."""
    position: int


class Activity(ResponseModel):
    """What a session is doing, or how its last turn ended."""

    state: ActivityState
    reason: Literal["no_worker", "worker_lost", "author_disabled", "turn_limit", "sessions", "no_backend"] | None = None
    """Why the session is stalled, is queued because of a limit, or waits for sessions."""
    message: str | None = None
    """What it does, or why it does not move, in words."""
    since: datetime | None = None


class SessionProject(ResponseModel):
    id: str
    name: str | None = None
    """None: the project was deleted."""


class SessionCounts(ResponseModel):
    """The number of sessions in each state."""

    type: Literal["session_counts"]
    total: int
    states: dict[SessionState, int]


class SessionOwner(ResponseModel):
    id: str | None = None
    name: str | None = None


class SessionEnd(ResponseModel):
    """How a session ended. It accepts nothing more, and can be forked."""

    outcome: Literal["completed", "failed", "cancelled", "expired"]
    reason: str | None = None
    ended_by: str | None = None
    """The member who ended it. None: it ended by itself, or by a policy."""
    ended_at: datetime


class SessionPin(ResponseModel):
    session_id: str
    is_pinned: bool


class SessionTemplate(ResponseModel):
    """A template for new sessions."""

    id: str
    name: str
    description: str | None = None
    session: dict[str, Any]
    """The body of the request that creates a session."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class Session(ResponseModel):
    id: str
    agent: AgentDefinition
    environment_id: str
    backend: str | None = None
    """The backend that was chosen for it. None: the operator's default."""
    status: SessionStatus
    state: SessionState | None = None
    """The state in one word. None if the server is older than this client."""
    activity: Activity | None = None
    """None if the server is older than this client."""
    title: str | None = None
    metadata: dict[str, str] = {}
    context: dict[str, Any] = {}
    usage: Usage = Usage()
    interactions: int = 0
    """Requests to models, of all turns."""
    last_interaction_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    is_pinned: bool | None = None
    """Whether the caller has pinned it. Only in lists."""
    forked_from: ForkedFrom | None = None
    mode: Literal["interactive", "background"] = "interactive"
    project_ids: list[str] = []
    projects: list[SessionProject] = []
    """The projects with their names."""
    workspace_id: str | None = None
    bases: dict[str, dict[str, Any]] = {}
    """By project: the commit and the branch that its tree started from. Set once the first turn has started."""
    resources: list[dict[str, Any]] = []
    """Files that are placed in the session's tree."""
    created_by: str | None = None
    """The member who created the session."""
    owner: SessionOwner | None = None
    visibility: Visibility = "organisation"
    team_id: str | None = None
    """The team that can see the session, if the visibility is `team`."""
    conversation_id: str | None = None
    """The harness's own id of the conversation. For Claude Code, its session id."""
    parent_id: str | None = None
    """The session that started it."""
    group_id: str | None = None
    """The sessions that were started together."""
    ends_when_done: bool = False
    """Whether the session ends by itself when its queue is empty."""
    end: SessionEnd | None = None


class DeliveryResult(ResponseModel):
    """The result of a merge or push: the session's work is now in a branch of its project."""

    session_id: str
    project_id: str
    status: Literal["merged", "fast_forwarded", "pushed", "unchanged"]
    branch: str
    commit: str
    before: str | None = None
    """The commit that the branch pointed to before; None if the branch is new."""


class TurnMetrics(ResponseModel):
    duration_seconds: float | None = None
    """None while the turn runs."""
    attempts: int = 0
    retries: int = 0
    """Attempts that failed temporarily."""
    handovers: int = 0
    """Attempts that only continued a turn which had waited for a person, or whose worker stopped in order."""
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int | None = None


class TurnResult(ResponseModel):
    session_id: str = ""
    success: bool = False
    text: str = ""
    """The agent's last message; partial if the turn was cut short."""
    data: dict[str, Any] = {}
    error: str | None = None
    error_message: str | None = None
    pending: list[str] = []
    metrics: TurnMetrics = TurnMetrics()


class Turn(ResponseModel):
    id: str
    session_id: str
    status: TurnStatus
    attempt: int
    """How many workers have started on the turn. `result.metrics` says how many of them were retries or handovers."""
    input_event_id: str
    first_seq: int
    """The position at which the turn started. To stream the whole turn, pass `first_seq - 1` as `after`."""
    usage: Usage = Usage()
    commit: str | None = None
    """The commit that was checked out in the working directory at the end of the turn. None: none, or not known."""
    commits: dict[str, str] = {}
    """The same for each project, by its id."""
    tools: dict[str, ToolCalls] = {}
    """The calls by tool. Empty until the turn has ended."""
    last_interaction_at: datetime | None = None
    """When the last response of a model arrived."""
    result: TurnResult = TurnResult()
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def step_failed(self) -> bool:
        """Whether the turn completed, but its step failed: a command, or work of a client or of child sessions."""
        return self.status == "completed" and not self.result.success


class Event(ResponseModel):
    """An event, or a preview of one (`event_start`, `event_delta`). Fields that a type does not have are None."""

    type: str
    id: str | None = None
    processed_at: datetime | None = None
    position: str | None = None
    """The event's position in the log, for a stream's `after` and for forks. In a list, the first position of a message
    that was queued; in a stream, the position of this frame.
    """
    content: list[dict[str, Any]] | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    mcp_server_name: str | None = None
    tool_use_id: str | None = None
    mcp_tool_use_id: str | None = None
    custom_tool_use_id: str | None = None
    context: dict[str, Any] | None = None
    """The context of the session and of the message, in the call of a custom tool."""
    question: bool | None = None
    """Whether a custom tool call asks a person a question."""
    answers: dict[str, str] | None = None
    answered_by: str | None = None
    answered_by_name: str | None = None
    session_thread_id: str | None = None
    agent_name: str | None = None
    evaluated_permission: str | None = None
    result: str | None = None
    deny_message: str | None = None
    updated_input: dict[str, Any] | None = None
    """The input that a person approved instead of the model's."""
    session_rule: str | None = None
    decided_by: str | None = None
    """Who decided: the id of an API key, `clock` for an expired approval, or `turn`."""
    decided_by_name: str | None = None
    edited_by_name: str | None = None
    """Who edited the input, if not the person who approved it."""
    permission: dict[str, Any] | None = None
    """The rule or hook that decided on a call."""
    command: dict[str, Any] | str | None = None
    """What a command did, in the result of a call. In an event about a shell step, its command line."""
    is_error: bool | None = None
    stop_reason: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    thinking: str | None = None
    event: dict[str, Any] | None = None
    event_id: str | None = None
    delta: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text blocks of a message or a result, joined; for an `event_delta`, the new text."""
        if self.delta is not None:
            return str(self.delta.get("content", {}).get("text", ""))
        return "\n".join(str(block.get("text", "")) for block in self.content or [] if block.get("type") == "text")


class Change(Event):
    """A change of a session or a deployment, from the feed of the organisation. `position` is its position there."""

    session_id: str = ""
    """Empty for a change of a deployment, unless its run has created a session."""
    deployment_id: str | None = None
    session_position: int | None = None
    """The event's position in the log of the session; 0 for `session.created`."""
    session_title: str | None = None


class AgentReference(ResponseModel):
    id: str
    version: int


class CronSchedule(ResponseModel):
    type: Literal["cron"] = "cron"
    expression: str
    timezone: str
    last_run_at: datetime | None = None
    upcoming_runs_at: list[datetime] = []


class SchedulePreview(ResponseModel):
    """The next times of an expression in a time zone."""

    expression: str
    timezone: str
    upcoming_runs_at: list[datetime] = []


class Deployment(ResponseModel):
    """What starts sessions, by a schedule or on request."""

    id: str
    name: str
    description: str | None = None
    agent: AgentReference
    environment_id: str
    initial_events: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    schedule: CronSchedule | None = None
    """None: only clients start runs."""
    status: Literal["active", "paused"]
    paused_reason: dict[str, Any] | None = None
    overlap_policy: Literal["allow_all", "skip", "buffer_one", "cancel_other"] = "allow_all"
    catch_up_seconds: int = 0
    metadata: dict[str, str] = {}
    runs_as: str = ""
    """The member in whose name the schedule starts sessions."""
    created_at: datetime
    archived_at: datetime | None = None


class RunError(ResponseModel):
    type: str
    message: str = ""


class RunTrigger(ResponseModel):
    type: Literal["schedule", "manual"]
    scheduled_at: datetime | None = None


class DeploymentRun(ResponseModel):
    """A run has either a session or an error."""

    id: str
    deployment_id: str
    session_id: str | None = None
    error: RunError | None = None
    skipped: bool = False
    """Whether it did not start because of the overlap policy."""
    trigger_context: RunTrigger
    created_at: datetime


class FileChange(ResponseModel):
    path: str
    old_path: str | None = None
    """The path before a rename."""
    status: str
    added: int | None = None
    """Number of lines; None for a binary file."""
    deleted: int | None = None
    binary: bool = False


class FileConflict(ResponseModel):
    """A file with conflicting changes in a session and a branch."""

    path: str
    reason: str
    lines: list[int] = []
    """Line numbers of the conflicts, counted in git's merged file."""
    last_commit: str | None = None
    """The branch's last commit that changed the file."""


class StateChanges(ResponseModel):
    count: int
    """Number of files."""
    files: list[FileChange]
    added: int = 0
    deleted: int = 0


class ChangesByState(ResponseModel):
    """The changes by their state in git. The last three are those of `git status` at the end of the diff."""

    committed: StateChanges
    """From the commit at the start of the diff to the one at its end."""
    staged: StateChanges
    unstaged: StateChanges
    untracked: StateChanges


class TreeDiff(ResponseModel):
    project_id: str | None = None
    """None for the session's scratch directory."""
    name: str
    files: list[FileChange]
    added: int = 0
    deleted: int = 0
    left_out: list[str] = []
    """Files that were not compared, each with the reason."""
    states: ChangesByState | None = None
    """None: not known."""


class Diff(ResponseModel):
    """The changes to a session's files, by tree."""

    session_id: str
    trees: list[TreeDiff]


class Deleted(ResponseModel):
    id: str
    type: str


class Page(ResponseModel, Generic[T]):
    data: list[T]
    next_page: str | None = None


class Worker(ResponseModel):
    type: Literal["worker"]
    id: str
    host: str
    state: Literal["running", "lost"]
    """`lost`: its lease has expired, and it did not stop in order."""
    version: str | None = None
    backends: list[str] = []
    harnesses: list[str] = []
    running_turns: int
    max_turns: int | None = None
    started_at: datetime
    last_seen_at: datetime


class TaskQueue(ResponseModel):
    """A task queue in Temporal."""

    type: Literal["task_queue"]
    name: str
    kind: Literal["workflow", "activity"]
    backend: str | None = None
    """The backend that all its tasks need."""
    backlog: int
    """Tasks that no worker has taken yet. Approximate."""
    oldest_seconds: float
    added_per_second: float
    taken_per_second: float
    pollers: int


class WorkerVersion(ResponseModel):
    version: str | None = None
    workers: int


class Versions(ResponseModel):
    type: Literal["versions"]
    footplate: str
    """The version of the API server."""
    workers: list[WorkerVersion]
    python: str
    postgresql: str
    schema_revision: str
    temporal: str | None = None
    """None: Temporal does not respond."""


class ExplainedDecision(ResponseModel):
    outcome: Literal["allow", "ask", "deny"]
    reason: str
    rule: str | None = None
    """The rule that decided. None: a default or a built-in check."""
    layer: str | None = None


class ExplainedCommandPart(ExplainedDecision):
    kind: str
    text: str
    via: list[str] = []
    """Programs that run other commands, such as `timeout`."""
    runs: list[str] = []


class EvaluatedLayer(ResponseModel):
    layer: str
    deny: list[str] = []
    ask: list[str] = []
    allow: list[str] = []


class PolicyExplanation(ExplainedDecision):
    """What the gate would decide about a call."""

    type: Literal["policy_explanation"]
    tool: str
    hook: str | None = None
    """A hook that would also run. Its decision is not known."""
    depends_on_links: bool = False
    parts: list[ExplainedCommandPart] = []
    layers: list[EvaluatedLayer] = []
