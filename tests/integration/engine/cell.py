"""A cell inside the test's process, with the real engine and stores. Each turn runs a function of the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
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
from footplate.domain.ports.engine import LiveTurn, OpenEnvironment, OpenRequest, Trees
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Mode, Turn, TurnOutcome, TurnStatus
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.deferred_turn_starter import DeferredTurnStarter
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.session_waker import TemporalWaker, workflow_id
from footplate.engine.temporal.worker import run_worker
from footplate.engine.turn.runner import TurnLimits, TurnRunner, TurnServices
from footplate.engine.warm.prewarming import Prewarmer
from footplate.engine.warm.warm_pool import WarmPool
from footplate.engine.worker_lease import WorkerLease
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.gate.turn_gate import TurnGateFactory
from footplate.proxy.model_proxy import ModelProxy
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal
from footplate.store.leases.branch_and_directory_leases import WriteLeases
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.deferred_turns import DeferredTurns
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.policies import SessionRuleLoader
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.nudges import NudgeListener, NudgeSender
from footplate.stream.turn_publisher import TurnPublisher

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
        self, trees: Trees | None = None, *, tree: str = SCRATCH_TREE, backends: Sequence[str] = ()
    ) -> AsyncIterator[str]:
        """Runs a worker and yields its id. With `trees` it stores a snapshot of `tree` at the end of each turn.
        `backends`: those that it offers.
        """
        stop = asyncio.Event()
        settings = self.settings
        if backends:
            settings = settings.model_copy(update={"environment": backends[0], "backends": ",".join(backends)})
        claims = self.cell.claims_of_worker(*backends)
        async with AsyncExitStack() as exits:
            leases = WorkerLeases(self.cell.database, backends=backends)
            keeper = WorkerLease(leases, worker_id=ids.new_id(ids.WORKER), host="test", lease_seconds=settings.lease)
            live = await exits.enter_async_context(LivePublisher(settings.redis_url))
            environments, models = (
                _Folders(self.folder, self.opened, tree=tree if trees is not None else None),
                await exits.enter_async_context(ModelProxy({})),
            )
            conversations = ConversationCache(self.cell.turns, max_bytes=1 << 20, max_idle_seconds=300)
            slots = Prewarmer(
                WarmPool(
                    max_processes=settings.slots,
                    max_idle_seconds=settings.slot_seconds,
                    deadline=lambda: keeper.deadline,
                ),
                claims=claims,
                conversations=conversations,
                environments=environments,
                models=models,
                harness=lambda _: self.harness,
                deadline=lambda: keeper.deadline,
            )
            deferred = DeferredTurnStarter(
                DeferredTurns(self.cell.database, LimitStore(self.cell.database)), self.waker
            )
            parts = TurnServices(
                claims=claims,
                turns=self.cell.turns,
                live=_LiveTurns(live),
                nudges=await exits.enter_async_context(NudgeListener(settings.redis_url)),
                waker=self.waker,
                environments=environments,
                gate_factory=TurnGateFactory(SessionRuleLoader(self.cell.database)),
                trees=trees,
                write_leases=WriteLeases(self.cell.database),
                snapshot_each_call=False,
                models=models,
                find_harness=lambda _: self.harness,
                lease=keeper,
                conversations=conversations,
                warm_pool=WarmPool(max_processes=0, max_idle_seconds=0, deadline=lambda: keeper.deadline),
                prewarmer=slots,
                limits=TurnLimits(
                    lease_seconds=settings.lease,
                    max_failures=settings.max_failures,
                    max_attempts=settings.max_attempts,
                    retry_wait=settings.retry_wait,
                    max_retry_wait=settings.retry_wait_most,
                ),
                stopping=stop,
                on_turn_slot_free=deferred.check_soon,
            )
            for running in (keeper.running(), slots.running(), deferred.running()):
                await exits.enter_async_context(running)
            activities = TurnActivities(
                TurnRunner(parts),
                heartbeat_timeout=settings.heartbeat_timeout,
                drain=settings.drain,
                max_turns=settings.max_turns if backends else None,
            )
            sweep = SweepActivities(leases, self.waker)
            # Like a separate process, each worker has a client of its own: the library refuses a shared one.
            client = await connect_temporal(settings.temporal_address)
            task = asyncio.create_task(run_worker(client, settings, activities, sweep, stop))
            try:
                yield keeper.worker_id
            finally:
                stop.set()
                await task

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


class _LiveTurns:
    def __init__(self, live: LivePublisher) -> None:
        self._live = live

    def open_turn(self, organisation: str, session_id: str) -> LiveTurn:
        return TurnPublisher(self._live, organisation, session_id)


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
