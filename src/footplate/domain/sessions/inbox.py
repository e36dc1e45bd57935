"""The inbox: everything that waits for a person, across all sessions, with whom it is assigned to.

An item is a pending approval or question, a failed turn, or a merge conflict. It is not stored: it exists as long as
what it is about. Its id is the id of the event that asks, of the turn that failed, or of the merge conflict. Only its
assignment and until when it is snoozed are stored. A snoozed item comes back by time, without a write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Protocol

from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.approvals import Approval
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.domain.text.approval_display import call_label

CHANGED: Final = "inbox.changed"
"""The change of the feed when an item is assigned, snoozed or dismissed. What adds an item has its own change."""
CONFLICTS: Final = "conflicts"
"""The field of a turn's result with the files that could not be merged."""
_MAX_TITLE: Final = 200
_PROBLEMS: Final = frozenset({TurnStatus.FAILED, TurnStatus.TIMED_OUT, TurnStatus.LIMIT_REACHED})
_TITLES: Final = {
    TurnStatus.FAILED: "The turn failed",
    TurnStatus.TIMED_OUT: "The turn took too long",
    TurnStatus.LIMIT_REACHED: "The turn reached a limit",
    TurnStatus.COMPLETED: "The step failed",
}

InboxChange = Literal["updated", "dismissed", "closed", "added"]


class InboxKind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"
    FAILURE = "failure"
    MERGE_CONFLICT = "merge_conflict"


class InboxView(StrEnum):
    NEEDS_YOU = "needs_you"
    """Not snoozed, and assigned to the viewer or to nobody."""
    MINE = "mine"
    """Not snoozed, and assigned to the viewer."""
    SNOOZED = "snoozed"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSession:
    """The session of an item."""

    id: str
    title: str | None
    project_ids: Sequence[str]
    agent_name: str | None
    parent_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailure:
    """Why a turn failed."""

    code: str
    title: str
    message: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingMerge:
    """A merge that git could not make. `branch`: None if the files of child sessions could not be merged."""

    branch: str | None
    message: str
    files: Sequence[JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    id: str
    kind: InboxKind
    session: InboxSession
    turn_id: str | None
    turn_number: int | None
    created_at: datetime
    thread_id: str | None = None
    """The thread of the subagent that asks."""
    assignee_id: str | None = None
    assignee_name: str | None = None
    snoozed_until: datetime | None = None
    approval: Approval | None = None
    """For an approval or a question."""
    failure: TurnFailure | None = None
    conflict: ConflictingMerge | None = None

    @property
    def title(self) -> str:
        return _shorten(self._find_title())

    def _find_title(self) -> str:
        if self.approval is not None:
            body = self.approval.body
            label = call_label(str(body.get("name")), as_object(body.get("input")))
            return label if self.kind is InboxKind.QUESTION else f"{body.get('name')}: {label}"
        if self.conflict is not None:
            into = f" with {self.conflict.branch}" if self.conflict.branch else ""
            return f"Merge conflict{into}"
        assert self.failure is not None
        return f"{self.failure.title}: {self.failure.message}" if self.failure.message else self.failure.title


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxQuery:
    view: InboxView = InboxView.NEEDS_YOU
    kind: InboxKind | None = None
    project_id: str | None = None
    after: tuple[datetime, str] | None = None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxCounts:
    needs_you: int
    mine: int
    snoozed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUpdate:
    """A change of an item's assignment, or of until when it is snoozed. What was not sent stays unchanged."""

    assignee_id: str | None = None
    snoozed_until: datetime | None = None
    changes_assignee: bool = False
    changes_snooze: bool = False


class NotDismissible(Conflict):
    """Approvals and questions cannot be dismissed, because their sessions wait for them."""

    def __init__(self, kind: InboxKind) -> None:
        super().__init__(
            f"This {kind.value} cannot be dismissed, because its session waits for a person.",
            help_text="Approve or deny the call, or answer the question. Or snooze the item.",
        )


class InboxItemNotFound(NotFound):
    def __init__(self, item_id: str) -> None:
        super().__init__("inbox item", item_id)
        self.help_text = "It was decided, answered or dismissed, or its session runs again. List the inbox again."


class InboxReads(Protocol):
    async def inbox(self, principal: Principal, query: InboxQuery) -> Sequence[InboxItem]:
        """Return the items that the principal can see, the oldest first."""

    async def inbox_item(self, principal: Principal, item_id: str) -> InboxItem: ...
    async def inbox_counts(self, principal: Principal) -> InboxCounts: ...


class InboxUnit(Protocol):
    async def update_inbox_item(self, principal: Principal, item_id: str, update: InboxUpdate) -> InboxItem:
        """Assign or snooze an item. Raises `InvalidRequest` for an assignee who cannot see the session."""

    async def dismiss_inbox_item(self, principal: Principal, item_id: str) -> str:
        """Dismiss a failure or a merge conflict for everyone, and return its session. Repeating it has no effect."""

    async def record_merge_conflict(
        self, principal: Principal, session_id: str, project_id: str, conflict: ConflictingMerge
    ) -> None:
        """Add the conflict of a merge that a client requested, or update that of an earlier one."""

    async def remove_merge_conflict(self, session_id: str, project_id: str, branch: str) -> bool:
        """Remove the conflicts with a branch, because a merge into it has succeeded. False: there were none."""


def find_problem(outcome: TurnOutcome) -> InboxKind | None:
    """Decide whether a turn that ends needs a person. None: it does not."""
    if outcome.status not in _PROBLEMS and not (outcome.status is TurnStatus.COMPLETED and outcome.step_failed):
        return None
    return InboxKind.FAILURE if _read_conflict(outcome.data, "") is None else InboxKind.MERGE_CONFLICT


def load_failure(turn_id: str, status: str | None, result: Mapping[str, Json]) -> TurnFailure:
    known = TurnStatus(status) if status is not None else TurnStatus.FAILED
    error = result.get("error")
    return TurnFailure(
        code="step_failed" if known is TurnStatus.COMPLETED else known.value,
        title=_TITLES.get(known, "The turn failed"),
        message=error if isinstance(error, str) else "",
        turn_id=turn_id,
    )


def load_conflict(result: Mapping[str, Json]) -> ConflictingMerge:
    """Read the conflict from the result of a turn: of a step that delivers, or of parallel sessions."""
    error = result.get("error")
    message = error if isinstance(error, str) else ""
    return _read_conflict(as_object(result.get("data")), message) or ConflictingMerge(
        branch=None, message=message, files=()
    )


def _read_conflict(data: Mapping[str, Json], message: str) -> ConflictingMerge | None:
    if found := as_objects(data.get(CONFLICTS)):
        branch = data.get("branch")
        return ConflictingMerge(branch=branch if isinstance(branch, str) else None, message=message, files=found)
    members = [one for one in as_objects(data.get("sessions")) if one.get("files") == "conflict"]
    files: list[JsonObject] = []
    for member in members:
        conflicts = member.get(CONFLICTS)
        for text in conflicts if isinstance(conflicts, list) else ():
            path, _, reason = str(text).partition(": ")
            files.append({"path": path, "reason": reason, "session_id": member.get("session_id")})
    return ConflictingMerge(branch=None, message=message, files=files) if members else None


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1]}…"
