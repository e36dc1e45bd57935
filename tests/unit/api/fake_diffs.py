"""An in-memory fake of diffs. A test sets the result."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.snapshots import ChangeState, DiffSummary, FileChange, TreeDiff, display_path
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import DiffRequest
from footplate.domain.sessions.comments import LineRange


@dataclass
class FakeDiffs:
    found: list[TreeDiff] = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    failure: Exception | None = None
    states: list[ChangeState | None] = field(default_factory=list)
    requests: list[tuple[Principal, str, DiffRequest]] = field(default_factory=list)
    open: int = 0

    async def find_diffs(self, principal: Principal, session_id: str, request: DiffRequest) -> Sequence[TreeDiff]:
        self.requests.append((principal, session_id, request))
        return self.found

    async def list_changes(self, diff: TreeDiff) -> DiffSummary:
        files = self.files if diff.old != diff.new else ()
        return DiffSummary(files, {"committed": (), "staged": files[:1], "unstaged": (), "untracked": files[1:]})

    async def quote_lines(self, diff: TreeDiff, lines: LineRange) -> str:
        if lines.path not in [display_path(change.path) for change in self.files]:
            raise InvalidRequest(f"path: {lines.path!r} did not change in this diff", field="path")
        return f"{lines.side} {lines.start}-{lines.end}"

    @asynccontextmanager
    async def stream_patch(
        self, diff: TreeDiff, state: ChangeState | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.states.append(state)
        self.open += 1
        try:
            yield self._pieces()
        finally:
            self.open -= 1

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.failure is not None:
            raise self.failure
