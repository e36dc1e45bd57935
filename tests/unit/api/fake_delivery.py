"""An in-memory fake of delivery. A test sets the result."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from footplate.domain.files.delivery import (
    BranchTarget,
    Delivery,
    DeliveryJournal,
    DeliveryRequest,
    DeliveryResult,
    DeliveryStep,
    build_commit_message,
)
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot, TreeDiff
from footplate.domain.projects.project import BaseCommit, SessionProject


def make_delivery(session_id: str = "sesn_1", message: str | None = None) -> Delivery:
    snapshot = Snapshot("a" * 40)
    step = DeliveryStep(
        session_id=session_id,
        seq=1,
        snapshot=snapshot,
        taken_at=datetime(2026, 11, 15, tzinfo=UTC),
        message=build_commit_message(session_id, message, None),
    )
    return Delivery(
        diff=TreeDiff(
            organisation="acme",
            session_id=session_id,
            ancestors=(),
            tree="proj_1",
            name="app",
            is_additional=False,
            old=None,
            new=StoredSnapshot(1, snapshot),
        ),
        project=SessionProject(id="proj_1", name="app", path="app", base=BaseCommit("b" * 40, "main", "app")),
        steps=[step],
    )


@dataclass
class FakeDelivery:
    result: DeliveryResult = field(
        default_factory=lambda: DeliveryResult(status="merged", branch="main", commit="c" * 40, before="b" * 40)
    )
    failure: Exception | None = None
    pieces: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, DeliveryRequest]] = field(default_factory=list)
    branches: list[BranchTarget] = field(default_factory=list)
    open: int = 0

    async def find_delivery(self, organisation: str, session_id: str, request: DeliveryRequest) -> Delivery:
        self.requests.append((session_id, request))
        return make_delivery(session_id, request.message)

    async def merge(
        self, actor: str, delivery: Delivery, target: BranchTarget, journal: DeliveryJournal | None = None
    ) -> DeliveryResult:
        assert journal is None
        self.branches.append(target)
        if self.failure is not None:
            raise self.failure
        return self.result

    push = merge

    @asynccontextmanager
    async def bundle(self, delivery: Delivery) -> AsyncIterator[AsyncIterator[bytes]]:
        self.open += 1
        try:
            yield self._pieces()
        finally:
            self.open -= 1

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self.failure is not None:
            raise self.failure
        for piece in self.pieces:
            yield piece
