"""Delivery of a session's work: a merge into a branch of its project, a push of a new branch, or an export as a git
bundle.

The delivered commit contains the agent's uncommitted changes, on top of the agent's own commits. The same files always
produce the same commit, so a repeated delivery changes nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol, cast

from footplate.domain.errors import Conflict
from footplate.domain.files.snapshots import Snapshot, TreeDiff
from footplate.domain.json import Json, JsonObject
from footplate.domain.projects.project import SessionProject

BUNDLE_REF: Final = "refs/heads/session"
"""The ref of the session's work in a bundle."""
MAX_MESSAGE_CHARACTERS: Final = 16 * 1024
"""Characters of a commit message."""
_MAX_SHOWN_CONFLICTS: Final = 20

DeliveryStatus = Literal["merged", "fast_forwarded", "pushed", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The work of a session to deliver: the current files of one project."""

    diff: TreeDiff
    """The difference between the initial and the current files."""
    project: SessionProject
    steps: Sequence["DeliveryStep"]
    """The earlier deliveries and this one. Each is a commit on top of the one before."""

    @property
    def organisation(self) -> str:
        return self.diff.organisation

    @property
    def session_id(self) -> str:
        return self.diff.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStep:
    session_id: str
    """The session whose log has it. For a fork, it may be a parent."""
    seq: int
    snapshot: Snapshot
    taken_at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """The result of a merge or a push. `before` and `commit` are the commits of the branch before and after it."""

    status: DeliveryStatus
    branch: str
    commit: str
    before: str | None

    def dump(self) -> JsonObject:
        return {"status": self.status, "branch": self.branch, "commit": self.commit, "before": self.before}

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "DeliveryResult":
        status, before = stored["status"], stored["before"]
        return cls(
            status=cast("DeliveryStatus", status),
            branch=str(stored["branch"]),
            commit=str(stored["commit"]),
            before=before if isinstance(before, str) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryJournal:
    """Lets a delivery that is repeated after a crash return the result of the attempt that changed the branch.

    Each update of the branch is recorded before it is made. If the branch has the commit of a recorded update, the
    repeated delivery returns that update, and changes nothing.
    """

    owner: str
    """Names the delivery as the holder of a lease. The lease of a lost attempt is taken over without waiting."""
    updates: Sequence[DeliveryResult]
    """What earlier attempts have recorded."""
    record_update: Callable[[DeliveryResult], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRequest:
    project_id: str | None = None
    """None: the session's only project."""
    message: str | None = None
    writes: bool = True
    """Whether the work will be written to a branch, which is not allowed while a turn runs."""
    epoch: int | None = None
    """The epoch of the turn that delivers. None: no turn does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchTarget:
    branch: str | None = None
    """None: for a merge, the branch that the session started from; for a push, a branch named after the session."""
    wait: float
    """Seconds to wait for other writers to the same branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileConflict:
    """A file with conflicting changes in the session and in the branch."""

    path: str
    reason: str
    """What each side did, as text."""
    line_numbers: Sequence[int] = ()
    """Line numbers of the conflicts, in the file that git merged."""
    last_commit: str | None = None
    """The last commit of the branch that changed the file."""

    @property
    def summary(self) -> str:
        where = ""
        if self.line_numbers:
            lines = ", ".join(str(number) for number in self.line_numbers[:5])
            where = f" (line {lines}{' and more' if len(self.line_numbers) > 5 else ''})"  # noqa: PLR2004 - as above
        return f"  {self.path}: {self.reason}{where}{f'; last in {self.last_commit}' if self.last_commit else ''}"

    @property
    def to_json(self) -> dict[str, Json]:
        return {
            "path": self.path,
            "reason": self.reason,
            "lines": [*self.line_numbers],
            "last_commit": self.last_commit,
        }


class MergeConflict(Conflict):
    code = "merge_conflict"

    def __init__(self, branch: str, conflicts: Sequence[FileConflict]) -> None:
        count = "1 file" if len(conflicts) == 1 else f"{len(conflicts)} files"
        shown = [conflict.summary for conflict in conflicts[:_MAX_SHOWN_CONFLICTS]]
        rest = [f"  and {len(conflicts) - len(shown)} more"] if len(conflicts) > len(shown) else []
        super().__init__(
            "\n".join([f"The session's work conflicts with the branch {branch!r} in {count}:", *shown, *rest]),
            help_text="Nothing was changed. Export the work with `footplate export --branch NAME` and resolve the "
            "conflicts in your checkout, or start a new session from the current branch.",
        )
        self.branch = branch
        self.summaries = tuple(f"{conflict.path}: {conflict.reason}" for conflict in conflicts[:_MAX_SHOWN_CONFLICTS])
        """The first conflicts, each with the reason."""
        self.fields["conflicts"] = [conflict.to_json for conflict in conflicts]


class BranchCheckedOut(Conflict):
    code = "branch_checked_out"

    def __init__(self, branch: str, project: str) -> None:
        super().__init__(
            f"The branch {branch!r} is checked out in the project {project!r}; a merge would leave its files outdated.",
            help_text="Nothing was changed. Run `footplate merge --into NEW-BRANCH` and then `git merge NEW-BRANCH` in "
            "that checkout, or run `footplate apply` there for the changes without commits. If a step failed, repeat "
            "it with another branch: `footplate steps retry STEP`, `footplate steps edit STEP --merge NEW-BRANCH`, "
            "`footplate play`.",
        )


class NothingToDeliver(Conflict):
    code = "nothing_to_leave"


def build_commit_message(session_id: str, message: str | None, title: str | None) -> str:
    """Build the commit message. Its last line names the session."""
    text = (message or title or f"Work of the session {session_id}").strip()
    return f"{text}\n\nFootplate-Session: {session_id}\n"


class TurnDelivery(Protocol):
    """Delivers the session's work to the branch that the step of the turn names."""

    async def deliver(
        self, updates: Sequence[DeliveryResult], record_update: Callable[[DeliveryResult], Awaitable[None]]
    ) -> DeliveryResult:
        """Deliver the work. `updates` and `record_update` are those of a `DeliveryJournal`.

        Raises `Refused` with the reason, and `Temporary` if a retry may help.
        """


class DeliveryService(Protocol):
    async def find_delivery(self, organisation: str, session_id: str, request: "DeliveryRequest") -> Delivery:
        """Raises `NotFound`, `InvalidRequest`, or `NothingToDeliver`, and `Fenced` if another worker has the turn."""

    async def merge(
        self, actor: str, delivery: Delivery, target: BranchTarget, journal: DeliveryJournal | None = None
    ) -> DeliveryResult:
        """Merge the work into a branch of the project's repository. `actor`: who asked for it, for messages.

        Raises `MergeConflict`, `BranchCheckedOut` or `LeaseHeld`.
        """

    async def push(
        self, actor: str, delivery: Delivery, target: BranchTarget, journal: DeliveryJournal | None = None
    ) -> DeliveryResult:
        """Push the work to the project's repository as a branch of its own."""

    def bundle(self, delivery: Delivery) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a git bundle of the commit, with all objects that the project lacks. An early exit cancels it."""
