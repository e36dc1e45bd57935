"""Delivery of a session's work: merged into a branch of its project, pushed as a new branch, or exported as a bundle.

The delivered work is one commit: the agent's own commits, with its uncommitted changes on top. The same files always
produce the same commit, so a repeated delivery changes nothing.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.errors import Conflict
from footplate.domain.json import Json
from footplate.domain.principals import Principal
from footplate.domain.projects import SessionProject
from footplate.domain.snapshots import Snapshot, TreeDiff

BUNDLED: Final = "refs/heads/session"
"""The ref of the session's work in a bundle."""
_MOST_TOLD: Final = 20

LeftStatus = Literal["merged", "fast_forwarded", "pushed", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """The work of a session to deliver: the current files of one project."""

    files: TreeDiff
    """The difference between the initial and the current files."""
    project: SessionProject
    steps: Sequence["Step"]
    """The earlier deliveries and this one. Each is a commit on top of the one before."""

    @property
    def organisation(self) -> str:
        return self.files.organisation

    @property
    def session_id(self) -> str:
        return self.files.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    session_id: str
    """The session whose log has it. For a fork, it may be a parent."""
    seq: int
    snapshot: Snapshot
    taken_at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The result of a merge or a push. `before` and `commit` are the commits of the branch before and after it."""

    status: LeftStatus
    branch: str
    commit: str
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureAsked:
    project_id: str | None = None
    """None: the session's only project."""
    message: str | None = None
    writes: bool = True
    """Whether the work will be written to a branch, which is not allowed while a turn runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchAsked:
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
    places: Sequence[int] = ()
    """Line numbers of the conflicts, in the file that git merged."""
    theirs: str | None = None
    """The last commit of the branch that changed the file."""

    @property
    def line(self) -> str:
        where = ""
        if self.places:
            lines = ", ".join(str(number) for number in self.places[:5])
            where = f" (line {lines}{' and more' if len(self.places) > 5 else ''})"  # noqa: PLR2004 - as above
        return f"  {self.path}: {self.reason}{where}{f'; last in {self.theirs}' if self.theirs else ''}"

    @property
    def record(self) -> dict[str, Json]:
        return {"path": self.path, "reason": self.reason, "lines": [*self.places], "last_commit": self.theirs}


class MergeConflict(Conflict):
    code = "merge_conflict"

    def __init__(self, branch: str, conflicts: Sequence[FileConflict]) -> None:
        count = "1 file" if len(conflicts) == 1 else f"{len(conflicts)} files"
        shown = [conflict.line for conflict in conflicts[:_MOST_TOLD]]
        rest = [f"  and {len(conflicts) - len(shown)} more"] if len(conflicts) > len(shown) else []
        super().__init__(
            "\n".join([f"The session's work conflicts with the branch {branch!r} in {count}:", *shown, *rest]),
            help_text="Nothing was changed. Export the work with `footplate export --branch NAME` and resolve the "
            "conflicts in your checkout, or start a new session from the current branch.",
        )
        self.fields["conflicts"] = [conflict.record for conflict in conflicts]


class CheckedOut(Conflict):
    code = "branch_checked_out"

    def __init__(self, branch: str, project: str) -> None:
        super().__init__(
            f"The branch {branch!r} is checked out in the project {project!r}; a merge would leave its files outdated.",
            help_text="Nothing was changed. Run `footplate apply` or `footplate export --branch NAME` there, or "
            "merge into another branch with `footplate merge --into BRANCH`.",
        )


class NothingToLeave(Conflict):
    code = "nothing_to_leave"


def message_of(session_id: str, given: str | None, title: str | None) -> str:
    """Build the commit message. Its last line names the session."""
    text = (given or title or f"Work of the session {session_id}").strip()
    return f"{text}\n\nFootplate-Session: {session_id}\n"


class Leaving(Protocol):
    async def find(self, principal: Principal, session_id: str, request: "DepartureAsked") -> Departure:
        """Raises `NotFound`, `InvalidRequest`, or `NothingToDeliver`."""

    async def merge(self, principal: Principal, delivery: Departure, target: BranchAsked) -> Left:
        """Merge the work into a branch of the project's repository.

        Raises `MergeConflict`, `BranchCheckedOut` or `LeaseHeld`.
        """

    async def push(self, principal: Principal, delivery: Departure, target: BranchAsked) -> Left:
        """Push the work to the project's repository as a branch of its own."""

    def bundle(self, delivery: Departure) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a git bundle of the commit, with all objects that the project lacks. An early exit cancels it."""
