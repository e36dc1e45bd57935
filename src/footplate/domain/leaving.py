"""How a session's work leaves its tree: merged into a branch of its project, pushed as one, or taken as a bundle. Pure.

What leaves is one commit: the agent's own history as far as it made one, and on top of it what it left uncommitted. It
is the same commit whenever it is made of the same files, so that asking twice changes nothing.
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
"""What a bundle calls the session's work."""
_MOST_TOLD: Final = 20

LeftStatus = Literal["merged", "fast_forwarded", "pushed", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """What of a session may leave: the files of one project as they are now."""

    files: TreeDiff
    """From how they began to how they are."""
    project: SessionProject
    steps: Sequence["Step"]
    """The moments at which they left before, and now; each is a commit that goes on from the one before."""

    @property
    def organisation(self) -> str:
        return self.files.organisation

    @property
    def session_id(self) -> str:
        return self.files.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    session_id: str
    """Whose log has it: of a fork it may be a parent."""
    seq: int
    snapshot: Snapshot
    taken_at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """How it ended: what the branch was at, and what it is at."""

    status: LeftStatus
    branch: str
    commit: str
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureAsked:
    project_id: str | None = None
    """None: the only one."""
    message: str | None = None
    writes: bool = True
    """It is to be written somewhere: not in the middle of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchAsked:
    branch: str | None = None
    """Of a merge: None is the one that the session began with. Of a push: one of the session's own."""
    wait: float
    """Seconds for others who write to the same branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileConflict:
    """One file that two changed in ways that do not go together."""

    path: str
    reason: str
    """In words: what each of the two did."""
    places: Sequence[int] = ()
    """Lines where it cannot be decided, counted in what git made of both."""
    theirs: str | None = None
    """The last commit of the branch that touched it."""

    @property
    def line(self) -> str:
        where = ""
        if self.places:
            lines = ", ".join(str(place) for place in self.places[:5])
            where = f" (line {lines}{' and more' if len(self.places) > 5 else ''})"  # noqa: PLR2004 - as above
        return f"  {self.path}: {self.reason}{where}{f'; last in {self.theirs}' if self.theirs else ''}"

    @property
    def record(self) -> dict[str, Json]:
        return {"path": self.path, "reason": self.reason, "lines": [*self.places], "last_commit": self.theirs}


class MergeConflict(Conflict):
    code = "merge_conflict"

    def __init__(self, branch: str, conflicts: Sequence[FileConflict]) -> None:
        count = "1 file" if len(conflicts) == 1 else f"{len(conflicts)} files"
        told = [conflict.line for conflict in conflicts[:_MOST_TOLD]]
        rest = [f"  and {len(conflicts) - len(told)} more"] if len(conflicts) > len(told) else []
        super().__init__(
            "\n".join([f"The session's work and the branch {branch!r} do not go together in {count}:", *told, *rest]),
            help_text="Nothing was changed. Take the work as a branch with `footplate export --branch NAME`, merge it "
            "and decide in your checkout; or begin a new session, whose tree begins with the branch as it is now.",
        )
        self.fields["conflicts"] = [conflict.record for conflict in conflicts]


class CheckedOut(Conflict):
    code = "branch_checked_out"

    def __init__(self, branch: str, project: str) -> None:
        super().__init__(
            f"The branch {branch!r} is checked out in the project {project!r}: the files there would not follow it.",
            help_text="Nothing was changed. In that checkout, `footplate apply` brings the changes into its files, and "
            "`footplate export --branch NAME` makes a branch to merge. `footplate merge --into BRANCH` takes another.",
        )


class NothingToLeave(Conflict):
    code = "nothing_to_leave"


def message_of(session_id: str, given: str | None, title: str | None) -> str:
    """Of the commit: its last line says where it comes from."""
    text = (given or title or f"Work of the session {session_id}").strip()
    return f"{text}\n\nFootplate-Session: {session_id}\n"


class Leaving(Protocol):
    async def find(self, principal: Principal, session_id: str, asked: "DepartureAsked") -> Departure:
        """Raises `NotFound`, `InvalidRequest`, or `NothingToLeave`."""

    async def merge(self, principal: Principal, departure: Departure, asked: BranchAsked) -> Left:
        """Into a branch of the project, where it comes from. Raises `MergeConflict`, `CheckedOut`, `LeaseHeld`."""

    async def push(self, principal: Principal, departure: Departure, asked: BranchAsked) -> Left:
        """As a branch of its own."""

    def bundle(self, departure: Departure) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The same commit with all that the project does not have, for `git fetch`. Who leaves early ends it."""
