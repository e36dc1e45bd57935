"""An in-memory fake of delivery. A test sets the result."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from footplate.domain.leaving import BranchAsked, Departure, DepartureAsked, Left, Step, message_of
from footplate.domain.principals import Principal
from footplate.domain.projects import Base, SessionProject
from footplate.domain.snapshots import KeptSnapshot, Snapshot, TreeDiff


def departure(session_id: str = "sesn_1", message: str | None = None) -> Departure:
    snapshot = Snapshot("a" * 40)
    step = Step(
        session_id=session_id,
        seq=1,
        snapshot=snapshot,
        taken_at=datetime(2026, 11, 15, tzinfo=UTC),
        message=message_of(session_id, message, None),
    )
    return Departure(
        files=TreeDiff(
            organisation="acme",
            session_id=session_id,
            owners=(),
            tree="proj_1",
            name="app",
            beside=False,
            old=None,
            new=KeptSnapshot(1, snapshot),
        ),
        project=SessionProject(id="proj_1", name="app", path="app", base=Base("b" * 40, "main", "app")),
        steps=[step],
    )


@dataclass
class TwinLeaving:
    left: Left = field(default_factory=lambda: Left(status="merged", branch="main", commit="c" * 40, before="b" * 40))
    fails: Exception | None = None
    pieces: list[bytes] = field(default_factory=list)
    asked: list[tuple[str, DepartureAsked]] = field(default_factory=list)
    branches: list[BranchAsked] = field(default_factory=list)
    open: int = 0

    async def find(self, _principal: Principal, session_id: str, asked: DepartureAsked) -> Departure:
        self.asked.append((session_id, asked))
        return departure(session_id, asked.message)

    async def merge(self, _principal: Principal, _departure: Departure, asked: BranchAsked) -> Left:
        self.branches.append(asked)
        if self.fails is not None:
            raise self.fails
        return self.left

    push = merge

    @asynccontextmanager
    async def bundle(self, _departure: Departure) -> AsyncIterator[AsyncIterator[bytes]]:
        self.open += 1
        try:
            yield self._pieces()
        finally:
            self.open -= 1

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self.fails is not None:
            raise self.fails
        for piece in self.pieces:
            yield piece
