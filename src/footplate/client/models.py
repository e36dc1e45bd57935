"""What the server answers, as far as this client knows it. Fields it does not know are kept, never refused."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")
SessionStatus = Literal["idle", "running", "rescheduling", "terminated"]
TurnStatus = Literal[
    "pending", "running", "awaiting_tool_results", "completed", "failed", "interrupted", "limit_reached", "timed_out"
]


class Answer(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    def wire(self) -> dict[str, Any]:
        """As it was sent: nothing that was left out comes back as a default."""
        return self.model_dump(mode="json", exclude_unset=True)


class ModelRef(Answer):
    id: str


class Definition(Answer):
    """An agent as it is, or as it was when a session took its copy."""

    id: str
    name: str
    version: int
    model: ModelRef
    system: str | None = None
    tools: list[dict[str, Any]] = []
    harness: str | None = None
    limits: dict[str, Any] | None = None


class Agent(Definition):
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class Environment(Answer):
    id: str
    name: str
    description: str | None = None
    config: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class Project(Answer):
    id: str
    name: str
    path: str | None = None
    url: str | None = None
    branch: str | None = None
    trust: str = "nothing"
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class DisplayedField(Answer):
    """A field of a call's input. Invisible, misleading and control characters of `text` are shown as `<U+202E>`."""

    name: str
    kind: str
    """`text`, or `json` for a value that is no string."""
    text: str


class DisplayedCall(Answer):
    """A call as every client should show it to the person who decides: the whole input, escaped by the server."""

    name: str
    agent_name: str | None = None
    reason: str | None = None
    input: list[DisplayedField] = []
    whole: bool = True
    """False: a list displays the first 2,000 characters of an input. `retrieve` has all of it."""


class Approval(Answer):
    """A call that waits, or waited, for a person's word."""

    id: str
    status: str
    session_id: str
    session_title: str | None = None
    turn_id: str
    session_thread_id: str | None = None
    agent_name: str | None = None
    """The subagent's, whose call it is; None for the agent's own."""
    name: str | None = None
    mcp_server_name: str | None = None
    input: dict[str, Any] | None = None
    display: DisplayedCall | None = None
    """None once the log has been put away."""
    permission: dict[str, Any] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    answered_by: str | None = None
    edited_input: dict[str, Any] | None = None
    """An input that a person wrote instead. Another person has to approve it, with the same `updated_input`."""
    edited_by: str | None = None


class AuditEntry(Answer):
    """What the gate decided on a call, what somebody said of it, or rules that were written."""

    id: str
    kind: str
    created_at: datetime
    session_id: str | None = None
    turn_id: str | None = None
    event_id: str | None = None
    principal: str | None = None
    outcome: str | None = None
    tool: str | None = None
    layer: str | None = None
    input_hash: str | None = None
    content: dict[str, Any] | None = None
    content_hash: str


class AuditVerification(Answer):
    entries: int
    batches: int
    unsealed: int
    head: str
    """The last batch's hash: who keeps it elsewhere can tell that nothing was cut off at the end."""
    faults: list[str]


class Policy(Answer):
    """An organisation's rules and hooks, and its terms for those who are asked."""

    layer: str
    permissions: dict[str, Any]
    approvals: dict[str, Any]
    updated_by: str | None = None
    updated_at: datetime | None = None


class ImportedRules(Answer):
    """What a settings file says, as it would be written here, and what was left out of it."""

    permissions: dict[str, Any]
    notes: list[str]


class ChangedCall(Answer):
    """A call of which proposed rules would have said something else."""

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


class PolicyReplay(Answer):
    calls: int
    gone: int
    depend_on_links: int
    depend_on_hooks: int
    outcomes: dict[str, dict[str, int]]
    """How many were decided so, by what they would be now."""
    oldest_at: datetime | None = None
    data: list[ChangedCall]
    next_page: str | None = None


class Workspace(Answer):
    id: str
    name: str
    project_ids: list[str] = []
    metadata: dict[str, str] = {}
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class File(Answer):
    id: str
    filename: str
    mime_type: str
    size_bytes: int
    created_at: datetime
    expires_at: datetime | None = None


class Usage(Answer):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    requests: int = 0
    cost_microusd: int | None = None
    """Not there where the model's price is not known: unknown is not free."""


class ForkedFrom(Answer):
    session_id: str
    event_id: str | None = None
    """None: the session had no event yet."""
    position: int


class Session(Answer):
    id: str
    agent: Definition
    environment_id: str
    status: SessionStatus
    title: str | None = None
    metadata: dict[str, str] = {}
    context: dict[str, Any] = {}
    usage: Usage = Usage()
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    forked_from: ForkedFrom | None = None
    mode: Literal["interactive", "background"] = "interactive"
    project_ids: list[str] = []
    workspace_id: str | None = None
    bases: dict[str, dict[str, Any]] = {}
    """By project: the commit and the branch that its tree began with, once a turn has begun."""
    resources: list[dict[str, Any]] = []
    """Files that lie in its tree."""


class Left(Answer):
    """A session's work that is in a branch of its project now."""

    session_id: str
    project_id: str
    status: Literal["merged", "fast_forwarded", "pushed", "unchanged"]
    branch: str
    commit: str
    before: str | None = None
    """What the branch was at; None: it is new."""


class TurnMetrics(Answer):
    duration_seconds: float | None = None
    """Not there while the turn runs."""
    attempts: int = 0
    retries: int = 0
    """Attempts that failed for a while."""
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int | None = None


class TurnResult(Answer):
    session_id: str = ""
    success: bool = False
    text: str = ""
    """What the agent said last; of a turn that was cut, as far as it came."""
    data: dict[str, Any] = {}
    error: str | None = None
    error_message: str | None = None
    pending: list[str] = []
    metrics: TurnMetrics = TurnMetrics()


class Turn(Answer):
    id: str
    session_id: str
    status: TurnStatus
    attempt: int
    """More than one: a worker was lost, or the model's provider made the turn wait."""
    input_event_id: str
    first_seq: int
    """The position at which the turn began: a stream `after` the one before shows all of it."""
    usage: Usage = Usage()
    result: TurnResult = TurnResult()
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Event(Answer):
    """One event, or a preview of one (`event_start`, `event_delta`); what only some types have is None on others."""

    type: str
    id: str | None = None
    processed_at: datetime | None = None
    position: str | None = None
    """Where the stream stood with it, for `after`. Lists do not tell."""
    content: list[dict[str, Any]] | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    mcp_server_name: str | None = None
    tool_use_id: str | None = None
    mcp_tool_use_id: str | None = None
    session_thread_id: str | None = None
    agent_name: str | None = None
    evaluated_permission: str | None = None
    result: str | None = None
    deny_message: str | None = None
    is_error: bool | None = None
    stop_reason: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    thinking: str | None = None
    event: dict[str, Any] | None = None
    event_id: str | None = None
    delta: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text blocks of a message or a result; the new text of an `event_delta`."""
        if self.delta is not None:
            return str(self.delta.get("content", {}).get("text", ""))
        return "\n".join(str(block.get("text", "")) for block in self.content or [] if block.get("type") == "text")


class FileChange(Answer):
    path: str
    old_path: str | None = None
    """Where a renamed file was."""
    status: str
    added: int | None = None
    """Lines; None for a binary file."""
    deleted: int | None = None
    binary: bool = False


class FileConflict(Answer):
    """One file that a session and a branch changed in ways that do not go together."""

    path: str
    reason: str
    lines: list[int] = []
    """Where it cannot be decided, counted in what git made of both."""
    last_commit: str | None = None
    """The last one of the branch that touched it."""


class TreeDiff(Answer):
    project_id: str | None = None
    """None: the session's scratch directory."""
    name: str
    files: list[FileChange]
    added: int = 0
    deleted: int = 0
    left_out: list[str] = []
    """What is there and not compared, and why."""


class Diff(Answer):
    """What changed of a session's files, tree by tree."""

    session_id: str
    trees: list[TreeDiff]


class Deleted(Answer):
    id: str
    type: str


class Page(Answer, Generic[T]):
    data: list[T]
    next_page: str | None = None
