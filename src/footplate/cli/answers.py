"""What `--json` prints, as models: the schemas in docs/schemas are written from here.

`python -m footplate.cli.answers docs/schemas` writes them; a test fails while they are not current.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter

from footplate.client.models import (
    Agent,
    Approval,
    AuditEntry,
    AuditVerification,
    ChangedCall,
    Deleted,
    Diff,
    Environment,
    Event,
    File,
    FileConflict,
    Left,
    Policy,
    PolicyReplay,
    Project,
    Session,
    Turn,
    Usage,
)


class RunResult(BaseModel):
    """The last word of `run` and `attach`."""

    type: Literal["result"] = "result"
    session_id: str
    turn_id: str | None
    status: Literal["completed", "failed", "interrupted", "limit_reached", "awaiting_tool_results", "timed_out"]
    exit_code: int
    text: str
    """What the agent said last."""
    error: str | None
    pending: list[str]
    """Ids of the events that wait for an answer."""
    usage: Usage
    attempts: int
    seconds: float


class Started(BaseModel):
    """`run --background`."""

    type: Literal["started"] = "started"
    session_id: str


class Interrupted(BaseModel):
    type: Literal["interrupt_sent"] = "interrupt_sent"
    session_id: str
    event_id: str


class SessionDetail(BaseModel):
    """`show`: the session and its newest turns."""

    session: Session
    turns: list[Turn]


class ImportedFile(BaseModel):
    """`import`: what became of one transcript."""

    path: str
    session_id: str | None = None
    """None: see `error`; without one, nobody says anything in it."""
    lines: int = 0
    left_out: int = 0
    """Lines that are no JSON, such as one that was not written to its end."""
    error: str | None = None


class Pulled(BaseModel):
    """`pull`."""

    session_id: str
    transcript_id: str
    """What Claude Code calls it."""
    path: str
    lines: int
    command: str
    """Goes on with it."""


class Applied(BaseModel):
    """`apply`."""

    session_id: str
    status: Literal["applied", "unchanged"]
    """`unchanged`: the checkout had all of it."""
    directory: str
    files: int
    """How many the session changed."""


class Exported(BaseModel):
    """`export`: one of the two."""

    session_id: str
    patch: str | None = None
    """The file that it is in."""
    branch: str | None = None
    commit: str | None = None
    """What the branch is at."""


class ProfileAnswer(BaseModel):
    """`config list`. A key is shown by its last characters only."""

    name: str
    current: bool
    base_url: str | None
    api_key: str | None
    model: str | None = None
    harness: str | None = None
    agent: str | None = None
    environment: str | None = None


class ErrorDetail(BaseModel):
    code: str
    title: str
    message: str
    help: str


class ErrorAnswer(BaseModel):
    """Any command with `--json` that fails before it has a result."""

    type: Literal["error"] = "error"
    error: ErrorDetail
    exit_code: int


class ConflictDetail(ErrorDetail):
    """`merge_conflict`."""

    conflicts: list[FileConflict]


class ConflictAnswer(ErrorAnswer):
    """`merge`, where the session's work and the branch do not go together."""

    error: ConflictDetail


class FindingAnswer(BaseModel):
    """One line of `doctor`."""

    name: str
    state: Literal["ok", "warning", "failed"]
    detail: str
    mend: str


class CollectedObjects(BaseModel):
    reason: str
    means: str
    """The reason in words."""
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
    """`gc`."""

    dry_run: bool
    removed: list[CollectedObjects]
    """Or, with `--dry-run`, what would be."""
    kept: list[CollectedObjects]
    objects: list[CollectedObject]
    """Each that is removed, or would be."""
    expired_sessions: list[str]
    """That a worker deletes by policy."""
    released_here: list[str]
    """Sessions that have expired, whose directories on this host its worker releases."""
    kept_here: list[KeptHere]
    """Those that have expired as well, and whose directories stay."""


class ExplainedPart(BaseModel):
    """One thing that a command does."""

    kind: str
    text: str
    outcome: Literal["allow", "ask", "deny"]
    rule: str | None
    layer: str | None
    reason: str
    via: list[str]
    """Programs that run another."""
    runs: list[str]
    """What they run."""


class Explanation(BaseModel):
    """`policy explain`."""

    type: Literal["explanation"] = "explanation"
    outcome: Literal["allow", "ask", "deny"]
    rule: str | None
    layer: str | None
    reason: str
    parts: list[ExplainedPart]
    rules: int
    """How many there are."""
    notes: list[str]


class ReplayAnswer(BaseModel):
    """`policy replay`."""

    type: Literal["policy_replay"] = "policy_replay"
    calls: int = 0
    """That were judged."""
    gone: int = 0
    """Of which nothing is left to be judged."""
    depend_on_links: int = 0
    depend_on_hooks: int = 0
    outcomes: dict[str, dict[str, int]] = {was: {"allow": 0, "ask": 0, "deny": 0} for was in ("allow", "ask", "deny")}
    """How many were decided so, by what they would be."""
    changed: list[ChangedCall] = []
    not_shown: int = 0
    complete: bool = True
    """There are no older ones."""
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
    "interrupt": Interrupted | ErrorAnswer,
    "sessions": list[Session] | ErrorAnswer,
    "session": Session | ErrorAnswer,
    "session-detail": SessionDetail | ErrorAnswer,
    "diff": Diff | ErrorAnswer,
    "left": Left | ConflictAnswer | ErrorAnswer,
    "applied": Applied | ErrorAnswer,
    "exported": Exported | ErrorAnswer,
    "import": list[ImportedFile] | ErrorAnswer,
    "pull": Pulled | ErrorAnswer,
    "agents": list[Agent] | ErrorAnswer,
    "agent": Agent | ErrorAnswer,
    "environments": list[Environment] | ErrorAnswer,
    "environment": Environment | ErrorAnswer,
    "projects": list[Project] | ErrorAnswer,
    "project": Project | ErrorAnswer,
    "files": list[File] | ErrorAnswer,
    "file": File | ErrorAnswer,
    "audit": list[AuditEntry] | ErrorAnswer,
    "audit-verify": AuditVerification | ErrorAnswer,
    "approvals": list[Approval] | ErrorAnswer,
    "deleted": list[Deleted] | ErrorAnswer,
    "profiles": list[ProfileAnswer] | ErrorAnswer,
    "policy": Policy | ErrorAnswer,
    "policy-explain": Explanation | ErrorAnswer,
    "policy-replay": ReplayAnswer | ErrorAnswer,
    "doctor": list[FindingAnswer],
    "gc": CollectedAnswer,
}


def schema(name: str) -> str:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"footplate --json: {name}",
        **TypeAdapter(SCHEMAS[name]).json_schema(mode="serialization"),
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    for each in SCHEMAS:
        (Path(sys.argv[1]) / f"{each}.json").write_text(schema(each))
