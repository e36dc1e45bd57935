"""Models of the output of `--json`. The JSON schemas in docs/schemas are generated from them.

`python -m footplate.cli.json_output_models docs/schemas` writes the schemas, also that of pipeline files. A test fails
while they are out of date.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter

from footplate.client.approvals import (
    DeletedComment,
    DismissedItem,
    InboxItem,
    NotificationSettings,
    NotificationTest,
    PushSubscription,
    SentComments,
    SessionComment,
)
from footplate.client.batches import Batch, BatchJob, JobResult
from footplate.client.response_models import (
    Agent,
    ApiKey,
    Approval,
    AuditEntry,
    AuditVerification,
    Backend,
    Change,
    ChangedCall,
    Deleted,
    DeliveryResult,
    Deployment,
    DeploymentRun,
    Diff,
    Environment,
    Event,
    File,
    FileConflict,
    Limit,
    Member,
    ModelInfo,
    Policy,
    PolicyReplay,
    Principal,
    Project,
    Question,
    SchedulePreview,
    Session,
    SessionPin,
    SessionTemplate,
    TaskQueue,
    Team,
    Turn,
    Usage,
    UsageReport,
    Versions,
    Worker,
)
from footplate.client.steps import Playback, Step, TerminalRecording
from footplate.client.webhooks import Trigger, TriggerDelivery, WebhookDelivery, WebhookEndpoint


class RunResult(BaseModel):
    """The final result of `run` and `attach`."""

    type: Literal["result"] = "result"
    session_id: str
    turn_id: str | None
    status: Literal["completed", "failed", "interrupted", "limit_reached", "awaiting_tool_results", "timed_out"]
    exit_code: int
    text: str
    """The agent's last message."""
    error: str | None
    pending: list[str]
    """Ids of the events that wait for an approval decision, an answer or a tool result."""
    usage: Usage
    attempts: int
    handovers: int = 0
    """Attempts that only continued a turn which had waited for a person, or whose worker stopped in order."""
    seconds: float


class Started(BaseModel):
    """The output of `run --background`."""

    type: Literal["started"] = "started"
    session_id: str


class Interrupted(BaseModel):
    type: Literal["interrupt_sent"] = "interrupt_sent"
    session_id: str
    event_id: str
    interrupted: bool
    """False: nothing was running or queued, so the interrupt had no effect."""
    pending_approvals: list[str]
    """Ids of the calls that wait for approval."""


class SessionDetail(BaseModel):
    """The output of `show`: the session and its newest turns."""

    session: Session
    turns: list[Turn]


class Notifications(BaseModel):
    """The output of `notifications ls`."""

    settings: NotificationSettings
    browsers: list[PushSubscription]


class StepQueue(BaseModel):
    """The output of `steps ls`: the steps in the order of the queue, and whether the session starts them by itself."""

    playback: Playback
    steps: list[Step]


class PipelineStarted(BaseModel):
    """The output of `queue run --detach`."""

    type: Literal["pipeline_started"] = "pipeline_started"
    session_id: str
    steps: list[Step]


class PipelineResult(BaseModel):
    """The output of `queue run`: its steps, as they were when the command ended."""

    type: Literal["pipeline_result"] = "pipeline_result"
    session_id: str
    status: Literal["completed", "failed", "cancelled", "needs_action", "paused"]
    """`needs_action`: a step waits for an approval or a tool result. `paused`: the session starts no further step."""
    exit_code: int
    seconds: float | None = None
    """From the start of the first step to the end of the last one that has ended."""
    sessions: int | None = None
    """How many sessions `usage` is the sum of: the session and those below it."""
    usage: Usage | None = None
    """Null if the server is older than this field."""
    steps: list[Step]


BatchStatus = Literal["completed", "failed", "cancelled", "needs_action"]


class BatchResult(BaseModel):
    """The output of `batch run`: the batch, as it was when the command ended."""

    type: Literal["batch_result"] = "batch_result"
    status: BatchStatus
    """`needs_action`: all jobs that have not ended wait for a person or a client."""
    exit_code: int
    batch: Batch


class ScheduleDetail(BaseModel):
    """The output of `schedules show`."""

    schedule: Deployment
    runs: list[DeploymentRun]
    """The last ones, newest first."""


class BatchDetail(BaseModel):
    """The output of `batch show`."""

    batch: Batch
    waiting: list[BatchJob]
    """The first jobs that wait for a person or a client."""
    failures: list[JobResult]
    """The results of the first jobs that failed."""


class ImportedFile(BaseModel):
    """The result of `import` for one transcript."""

    path: str
    session_id: str | None = None
    """None if the import failed (see `error`), or if the transcript has no messages."""
    lines: int = 0
    left_out: int = 0
    """Number of skipped lines that are not valid JSON, such as a truncated last line."""
    error: str | None = None


class Pulled(BaseModel):
    """The output of `pull`."""

    session_id: str
    transcript_id: str
    """The session id that Claude Code uses."""
    path: str
    lines: int
    command: str
    """The command that resumes the session in Claude Code."""


class PulledFile(BaseModel):
    """One output in the output of `files pull`."""

    file_id: str
    filename: str
    size_bytes: int
    path: str | None = None
    """Where it was written. None: it was not, and `error` says why."""
    error: str | None = None


class PulledFiles(BaseModel):
    """The output of `files pull`."""

    session_id: str
    directory: str
    files: list[PulledFile]
    omitted: list[str]
    """Files in the session's output directory that the server has not stored, each with the reason."""


class SavedRecording(BaseModel):
    """The output of `terminals save`."""

    recording_id: str
    session_id: str
    path: str
    size_bytes: int


class Applied(BaseModel):
    """The output of `apply`."""

    session_id: str
    title: str | None = None
    """The title of the session."""
    status: Literal["applied", "unchanged"]
    """`unchanged`: the checkout already had all changes."""
    directory: str
    files: int
    """Number of files that the session changed."""


class Exported(BaseModel):
    """The output of `export`: either a patch, or a branch and its commit."""

    session_id: str
    patch: str | None = None
    """Path of the patch file."""
    branch: str | None = None
    commit: str | None = None
    """The commit at the head of the branch."""


class ProfileAnswer(BaseModel):
    """One profile in the output of `config list`. Only the last characters of an API key are shown."""

    name: str
    current: bool
    base_url: str | None
    api_key: str | None
    model: str | None = None
    harness: str | None = None
    agent: str | None = None
    environment: str | None = None
    timeout: str | None = None


class SignedIn(BaseModel):
    """The output of `login`. The API key itself is only in the profile."""

    type: Literal["signed_in"] = "signed_in"
    profile: str
    base_url: str
    member_id: str
    member_name: str
    api_key_id: str
    expires_at: datetime


class SignedOut(BaseModel):
    """The output of `logout`."""

    type: Literal["signed_out"] = "signed_out"
    profile: str
    revoked: bool
    """False: the key had ended before."""


class DashboardLink(BaseModel):
    """The output of `dashboard`."""

    type: Literal["dashboard_link"] = "dashboard_link"
    url: str
    signs_in: bool
    """Whether the link signs one browser in, once."""


class ErrorDetail(BaseModel):
    code: str
    title: str
    message: str
    help: str


class ErrorAnswer(BaseModel, frozen=True):
    """The output of any command with `--json` that fails before it has a result."""

    type: Literal["error"] = "error"
    error: ErrorDetail
    exit_code: int


class ConflictDetail(ErrorDetail):
    """The details of a `merge_conflict` error."""

    conflicts: list[FileConflict]


class ConflictAnswer(ErrorAnswer):
    """The output of `merge` if the session's changes conflict with the branch."""

    error: ConflictDetail


class FindingAnswer(BaseModel):
    """One check in the output of `doctor`."""

    name: str
    state: Literal["ok", "warning", "failed"]
    detail: str
    mend: str


class CollectedObjects(BaseModel):
    reason: str
    means: str
    """Description of the reason."""
    objects: int
    bytes: int


class CollectedObject(BaseModel):
    key: str
    bytes: int
    reason: str


class KeptHere(BaseModel):
    session_id: str
    reason: str


class CollectedAnswer(BaseModel):
    """The output of `gc`."""

    dry_run: bool
    removed: list[CollectedObjects]
    """Removed objects by reason. With `--dry-run`, the objects that would be removed."""
    kept: list[CollectedObjects]
    objects: list[CollectedObject]
    """Every object that was removed, or that `--dry-run` would remove."""
    expired_sessions: list[str]
    """Sessions that a worker deletes because their retention time is over."""
    released_here: list[str]
    """Expired sessions whose directories the worker on this host releases."""
    kept_here: list[KeptHere]
    """Expired sessions whose directories stay on this host, with the reason."""


class ExplainedPart(BaseModel):
    """One part of a shell command and the decision on it."""

    kind: str
    text: str
    outcome: Literal["allow", "ask", "deny"]
    rule: str | None
    layer: str | None
    reason: str
    via: list[str]
    """Programs that run other commands, such as `timeout` or `env`."""
    runs: list[str]
    """Commands that these programs run."""


class Explanation(BaseModel):
    """The output of `policy explain`."""

    type: Literal["explanation"] = "explanation"
    outcome: Literal["allow", "ask", "deny"]
    rule: str | None
    layer: str | None
    reason: str
    parts: list[ExplainedPart]
    rules: int
    """Number of rules that were evaluated."""
    notes: list[str]


class ReplayAnswer(BaseModel):
    """The output of `policy replay`."""

    type: Literal["policy_replay"] = "policy_replay"
    calls: int = 0
    """Number of calls that were evaluated."""
    gone: int = 0
    """Number of calls that could not be evaluated because their data was deleted or archived."""
    depend_on_links: int = 0
    depend_on_hooks: int = 0
    outcomes: dict[str, dict[str, int]] = {was: {"allow": 0, "ask": 0, "deny": 0} for was in ("allow", "ask", "deny")}
    """Number of calls by their original outcome and then by the outcome under the proposed rules."""
    changed: list[ChangedCall] = []
    not_shown: int = 0
    complete: bool = True
    """True if there are no older calls beyond the limit."""
    notes: list[str] = []

    def add(self, page: PolicyReplay, shown: int) -> None:
        self.calls += page.calls
        self.gone += page.gone
        self.depend_on_links += page.depend_on_links
        self.depend_on_hooks += page.depend_on_hooks
        for was, row in page.outcomes.items():
            for would, number in row.items():
                self.outcomes[was][would] += number
        room = max(shown - len(self.changed), 0)
        self.changed += page.data[:room]
        self.not_shown += len(page.data[room:])


SCHEMAS: Final[dict[str, Any]] = {
    "run": RunResult | ErrorAnswer,
    "run-background": Started | ErrorAnswer,
    "run-line": Event | RunResult | ErrorAnswer,
    "log-line": Event | ErrorAnswer,
    "event-line": Change | ErrorAnswer,
    "interrupt": Interrupted | ErrorAnswer,
    "sessions": list[Session] | ErrorAnswer,
    "session": Session | ErrorAnswer,
    "session-detail": SessionDetail | ErrorAnswer,
    "steps": StepQueue | ErrorAnswer,
    "step": Step | ErrorAnswer,
    "playback": Playback | ErrorAnswer,
    "pipeline": PipelineResult | ErrorAnswer,
    "pipeline-started": PipelineStarted | ErrorAnswer,
    "batches": list[Batch] | ErrorAnswer,
    "batch": Batch | ErrorAnswer,
    "batch-detail": BatchDetail | ErrorAnswer,
    "batch-run": BatchResult | ErrorAnswer,
    "batch-result-line": JobResult | ErrorAnswer,
    "schedules": list[Deployment] | ErrorAnswer,
    "schedule": Deployment | ErrorAnswer,
    "schedule-preview": SchedulePreview | ErrorAnswer,
    "schedule-detail": ScheduleDetail | ErrorAnswer,
    "schedule-run": DeploymentRun | ErrorAnswer,
    "schedule-runs": list[DeploymentRun] | ErrorAnswer,
    "diff": Diff | ErrorAnswer,
    "left": DeliveryResult | ConflictAnswer | ErrorAnswer,
    "applied": Applied | ErrorAnswer,
    "exported": Exported | ErrorAnswer,
    "import": list[ImportedFile] | ErrorAnswer,
    "pull": Pulled | ErrorAnswer,
    "agents": list[Agent] | ErrorAnswer,
    "agent": Agent | ErrorAnswer,
    "models": list[ModelInfo] | ErrorAnswer,
    "workers": list[Worker] | ErrorAnswer,
    "queues": list[TaskQueue] | ErrorAnswer,
    "versions": Versions | ErrorAnswer,
    "environments": list[Environment] | ErrorAnswer,
    "environment": Environment | ErrorAnswer,
    "backends": list[Backend] | ErrorAnswer,
    "projects": list[Project] | ErrorAnswer,
    "project": Project | ErrorAnswer,
    "files": list[File] | ErrorAnswer,
    "file": File | ErrorAnswer,
    "files-pull": PulledFiles | ErrorAnswer,
    "terminals": list[TerminalRecording] | ErrorAnswer,
    "terminals-save": SavedRecording | ErrorAnswer,
    "audit": list[AuditEntry] | ErrorAnswer,
    "audit-verify": AuditVerification | ErrorAnswer,
    "usage": UsageReport | ErrorAnswer,
    "limits": list[Limit] | ErrorAnswer,
    "limit": Limit | ErrorAnswer,
    "members": list[Member] | ErrorAnswer,
    "member": Member | ErrorAnswer,
    "teams": list[Team] | ErrorAnswer,
    "team": Team | ErrorAnswer,
    "api-keys": list[ApiKey] | ErrorAnswer,
    "api-key": ApiKey | ErrorAnswer,
    "triggers": list[Trigger] | ErrorAnswer,
    "trigger": Trigger | ErrorAnswer,
    "trigger-deliveries": list[TriggerDelivery] | ErrorAnswer,
    "trigger-delivery": TriggerDelivery | ErrorAnswer,
    "webhooks": list[WebhookEndpoint] | ErrorAnswer,
    "webhook": WebhookEndpoint | ErrorAnswer,
    "webhook-deliveries": list[WebhookDelivery] | ErrorAnswer,
    "webhook-delivery": WebhookDelivery | ErrorAnswer,
    "notifications": Notifications | ErrorAnswer,
    "notification-settings": NotificationSettings | ErrorAnswer,
    "notification-test": NotificationTest | ErrorAnswer,
    "approvals": list[Approval] | ErrorAnswer,
    "questions": list[Question] | ErrorAnswer,
    "question": Question | ErrorAnswer,
    "inbox": list[InboxItem] | ErrorAnswer,
    "inbox-dismissed": list[DismissedItem] | ErrorAnswer,
    "pins": list[SessionPin] | ErrorAnswer,
    "comments": list[SessionComment] | ErrorAnswer,
    "comment": SessionComment | ErrorAnswer,
    "comments-sent": SentComments | ErrorAnswer,
    "comments-deleted": list[DeletedComment] | ErrorAnswer,
    "templates": list[SessionTemplate] | ErrorAnswer,
    "template": SessionTemplate | ErrorAnswer,
    "deleted": list[Deleted] | ErrorAnswer,
    "login": SignedIn | ErrorAnswer,
    "logout": SignedOut | ErrorAnswer,
    "whoami": Principal | ErrorAnswer,
    "dashboard": DashboardLink | ErrorAnswer,
    "profiles": list[ProfileAnswer] | ErrorAnswer,
    "policy": Policy | ErrorAnswer,
    "policy-explain": Explanation | ErrorAnswer,
    "policy-replay": ReplayAnswer | ErrorAnswer,
    "doctor": list[FindingAnswer],
    "gc": CollectedAnswer,
}


def generate_schema(name: str) -> str:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"footplate --json: {name}",
        **TypeAdapter(SCHEMAS[name]).json_schema(mode="serialization"),
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    from footplate.cli.pipeline_file import pipeline_models

    for each in SCHEMAS:
        (Path(sys.argv[1]) / f"{each}.json").write_text(generate_schema(each))
    (Path(sys.argv[1]) / "pipeline.schema.json").write_text(pipeline_models.generate_schema())
