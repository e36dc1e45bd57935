"""Workers inside the test's process, as in production except for the environments and the harness: each turn runs a
function of the test.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from temporalio.client import Client, WorkflowExecutionStatus
from tests.integration.store.cell import Cell

from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.files.snapshots import SCRATCH_TREE
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Input
from footplate.domain.ports.engine import OpenEnvironment, OpenRequest
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Mode, Turn, TurnOutcome, TurnStatus
from footplate.engine.temporal.session_waker import TemporalWaker, workflow_id
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.stack.orphan_processes import wait_until
from footplate.stream.nudges import NudgeSender
from footplate.trees.session_trees import SessionTrees
from footplate.wiring.worker import Worker, WorkerOverrides, build_worker

Work = Callable[[TurnContext], Awaitable[TurnOutcome]]
PATIENCE = 30.0
DONE = TurnOutcome(status=TurnStatus.COMPLETED, text="done")


@dataclass(slots=True)
class ScriptedHarness:
    """Runs the function that the test registered for the session."""

    work: dict[str, Work] = field(default_factory=dict)
    opens_late: Literal[True] = True

    async def run(self, turn: TurnContext) -> TurnOutcome:
        return await self.work[turn.session_id](turn)


@dataclass(slots=True)
class Engine:
    cell: Cell
    client: Client
    settings: Settings
    principal: Principal
    folder: Path
    harness: ScriptedHarness = field(default_factory=ScriptedHarness)
    opened: list[str] = field(default_factory=list)
    """The session id of each environment that was opened."""

    @property
    def waker(self) -> TemporalWaker:
        return TemporalWaker(self.client, self.settings)

    @asynccontextmanager
    async def worker(
        self, trees: SessionTrees | None = None, *, tree: str = SCRATCH_TREE, backends: Sequence[str] = ()
    ) -> AsyncIterator[Worker]:
        """Runs a worker. With `trees` it stores a snapshot of `tree` at the end of each turn. `backends`: those that it
        offers.
        """
        settings = self.settings
        if backends:
            settings = settings.model_copy(update={"environment": backends[0], "backends": ",".join(backends)})
        overrides = WorkerOverrides(
            database=self.cell.database,
            objects=self.cell.objects,
            environments=_Folders(self.folder, self.opened, tree=tree if trees is not None else None),
            trees=trees,
            find_harness=lambda _: self.harness,
        )
        async with build_worker(settings, overrides) as worker:
            task = asyncio.create_task(worker.run())
            try:
                yield worker
            finally:
                worker.stopping.set()
                await task

    def with_own_queue(self) -> "Engine":
        """Returns an engine whose workflows no worker of another test runs."""
        return replace(self, settings=self.settings.model_copy(update={"task_queue": ids.new_id("queue")}))

    async def session(
        self,
        work: Work,
        *,
        limits: JsonObject | None = None,
        mode: Mode = Mode.INTERACTIVE,
        context: JsonObject | None = None,
    ) -> str:
        session_id = await self.cell.session(self.principal, limits=limits, mode=mode, context=context)
        self.harness.work[session_id] = work
        return session_id

    async def send(self, session_id: str, *inputs: Input | str, nudge: bool = True) -> bool:
        """Sends inputs as the API does. Returns whether it woke the workflow."""
        accepted = await self.cell.send(self.principal, session_id, *inputs)
        if accepted.nudge and nudge:
            nudger = NudgeSender(self.settings.redis_url)
            await nudger.nudge(session_id)
            await nudger.aclose()
        if accepted.ends_wait:
            await self.waker.end_wait(self.principal.organisation, session_id)
        if accepted.wake:
            await self.waker.wake(self.principal.organisation, session_id)
        return accepted.wake

    async def turns(self, session_id: str) -> list[Turn]:
        """Returns the turns, oldest first."""
        return [*await self.cell.reads.turns(self.principal, session_id, limit=100, before=None)][::-1]

    async def wait_for_ended_turns(self, session_id: str, count: int = 1) -> list[Turn]:
        """Waits until `count` turns have ended, and returns them."""

        async def over() -> bool:
            turns = await self.turns(session_id)
            return len(turns) >= count and all(turn.ended_at for turn in turns)

        assert await wait_until(over, PATIENCE), await self.turns(session_id)
        return await self.turns(session_id)

    async def types(self, session_id: str) -> list[str]:
        return [item.event.type for item in await self.cell.positions(session_id, self.principal)]

    async def errors(self, session_id: str) -> list[tuple[object, object]]:
        """Returns the type and the retry status of each `session.error`."""
        found: list[tuple[object, object]] = []
        for item in await self.cell.positions(session_id, self.principal):
            if item.event.type == events.SESSION_ERROR:
                error = item.event.body["error"]
                assert isinstance(error, dict)
                status = error["retry_status"]
                assert isinstance(status, dict)
                found.append((error["type"], status["type"]))
        return found

    async def is_open(self, session_id: str) -> bool:
        handle = self.client.get_workflow_handle(workflow_id(self.principal.organisation, session_id))
        return (await handle.describe()).status is WorkflowExecutionStatus.RUNNING

    async def wait_for_workflow_end(self, session_id: str) -> None:
        async def closed() -> bool:
            return not await self.is_open(session_id)

        assert await wait_until(closed, PATIENCE)


class _Folders:
    def __init__(self, root: Path, opened: list[str], *, tree: str | None) -> None:
        self._root = root
        self._opened = opened
        self._tree = tree

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        self._opened.append(request.session_id)
        directory = self._root / request.session_id
        directory.mkdir(exist_ok=True)
        trees = {} if self._tree is None else {self._tree: directory}
        return UnsandboxedEnvironment(str(directory), deadline=request.deadline, env=request.variables, trees=trees)
