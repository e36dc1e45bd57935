"""Runs one turn in this process: claims the turn, runs the harness (the agent loop), and commits the outcome.

All writes of the harness go through `FencedLog`, which rejects them after another worker has claimed the turn. The
outcome is committed in one database transaction, after all commands of the turn have ended.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

import structlog

from footplate import failpoints
from footplate.domain.agents import environment_config
from footplate.domain.agents.model_connections import find_provider
from footplate.domain.agents.project_agents import with_project_agents
from footplate.domain.errors import Fenced, FootplateError, HandOver, Permanent, Temporary
from footplate.domain.files.attachments import AttachmentSources
from footplate.domain.files.delivery import DeliveryService
from footplate.domain.files.session_outputs import OutputChanges
from footplate.domain.files.snapshots import TreeSnapshot
from footplate.domain.ports.child_store import ChildStore
from footplate.domain.ports.engine import (
    Claim,
    ClaimStore,
    Environments,
    FinishedTurn,
    GateFactory,
    LiveTurn,
    LiveTurns,
    ModelAccess,
    NothingToClaim,
    Nudges,
    OutputDirectories,
    Trees,
    TurnStore,
    Waker,
)
from footplate.domain.ports.harness import Harness, SupportsLazyEnvironment, TurnContext, WarmProcess
from footplate.domain.ports.project_setup import TreeSetup
from footplate.domain.ports.terminals import TerminalChannels
from footplate.domain.projects.allowed_directories import CONTEXT_KEY
from footplate.domain.projects.write_leases import WriteLeases
from footplate.domain.sessions.steps import StepKind
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.lazy_environment import LazyEnvironment
from footplate.engine.turn.attachments import TurnAttachments
from footplate.engine.turn.base_commits import fix_base_commits, load_instructions
from footplate.engine.turn.child_sessions import TurnChildren
from footplate.engine.turn.directory_lock import exclusive_directory
from footplate.engine.turn.fenced_log import FencedLog
from footplate.engine.turn.file_snapshots import RESCUE_SECONDS, TurnFiles, with_commits
from footplate.engine.turn.held_approvals import TurnHeldApprovals
from footplate.engine.turn.interrupts_and_steering import ControlInputs
from footplate.engine.turn.project_setup import ProjectSetups
from footplate.engine.turn.prompt_and_approval_hooks import TurnHooks
from footplate.engine.turn.step_content import prepare_step_content
from footplate.engine.turn.step_delivery import create_step_delivery
from footplate.engine.turn.telemetry import TurnTelemetry
from footplate.engine.turn.terminals import SessionTerminals
from footplate.engine.turn.timeout import TurnTimeout
from footplate.engine.turn_resources import TurnResources, open_turn_resources
from footplate.engine.wake_sessions import wake_sessions
from footplate.engine.warm.prewarming import Prewarmer
from footplate.engine.warm.warm_pool import WarmPool
from footplate.engine.worker_lease import HeldTurn, WorkerLease

log = structlog.get_logger(__name__)

_RETRY_AFTER_LOSS: Final = 0.5
_MIN_RETRY_WAIT: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    lease_seconds: float
    max_failures: int
    max_attempts: int
    retry_wait: float
    max_retry_wait: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    has_more: bool
    """Whether there is another turn to run."""


@dataclass(frozen=True, slots=True)
class RetryTurn:
    """The turn must be retried later. Temporal does that."""

    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class MoveTurn:
    """The turn has to run on a worker that offers this backend, and has not begun."""

    backend: str


_RETRY_AFTER_HANDOVER: Final = RetryTurn(0.01, HandOver().message)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices:
    claims: ClaimStore
    turns: TurnStore
    live: LiveTurns
    nudges: Nudges
    waker: Waker
    environments: Environments
    gate_factory: GateFactory
    trees: Trees
    tree_setup: TreeSetup
    setup_seconds: float
    """Time limit for a setup command."""
    output_directories: OutputDirectories
    write_leases: WriteLeases | None
    """None: sessions cannot name directories, so no two sessions share one."""
    snapshot_each_call: bool
    """Take snapshots after each call, not only at the start and the end of a turn."""
    attachment_sources: AttachmentSources
    """Loads attachments that inputs refer to."""
    children: ChildStore
    child_cancellation: ChildCancellation
    delivery: DeliveryService
    terminal_channels: TerminalChannels
    models: ModelAccess
    find_harness: Callable[[str], Harness]
    lease: WorkerLease
    conversations: ConversationCache
    warm_pool: WarmPool
    prewarmer: Prewarmer
    limits: TurnLimits
    stopping: asyncio.Event
    """Set when the worker is stopping: turns are handed over, and none begins."""
    on_turn_slot_free: Callable[[], None]
    """Called after a turn of an organisation whose concurrent turns are limited."""


class TurnRunner:
    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._claim_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, organisation: str, session_id: str) -> TurnEnded | RetryTurn | MoveTurn:
        services = self._services
        services.lease.check()
        if services.stopping.is_set():
            return _RETRY_AFTER_HANDOVER
        found = await self._claim_turn(organisation, session_id)
        live = services.live.open_turn(organisation, session_id)
        if isinstance(found, NothingToClaim):
            await live.publish(found.positions)
            await live.aclose()
            await wake_sessions(services.waker, found.to_wake)
            if found.needs_backend is not None:
                return MoveTurn(found.needs_backend)
            if found.retry_after is not None:
                return RetryTurn(
                    found.retry_after, "The next step is repeated after a failure, and waits for its time."
                )
            return TurnEnded(has_more=False)
        claim = found.claim
        try:
            await live.publish(claim.positions)
            if claim.attempt > 1:
                live.flush()  # the next event may take long
            telemetry = TurnTelemetry(claim)
            with telemetry.running():
                if claim.old_holder_may_live:
                    # The old holder sees the new epoch at its next renewal; without one, its commands die in this time.
                    await asyncio.sleep(services.limits.lease_seconds)
                return await _Turn(services, found, live, telemetry).run()
        finally:
            services.lease.remove_turn(found)
            if claim.frees_turn_slot:
                services.on_turn_slot_free()
            await live.aclose()

    async def _claim_turn(self, organisation: str, session_id: str) -> HeldTurn | NothingToClaim:
        """Claims the session's next turn, after a turn of the session that already runs in this process has ended.

        Temporal may start two activities for a session, for example after it was restored from an older copy. Without
        the lock, both could claim at the same time, and the second one would take the turn from the first.
        """
        lease = self._services.lease
        async with self._claim_locks.setdefault(session_id, asyncio.Lock()):
            if (earlier_turn := lease.find_turn(session_id)) is not None:
                await earlier_turn.done.wait()
            claim = await self._services.claims.claim(organisation, session_id, lease.worker_id)
            return claim if isinstance(claim, NothingToClaim) else lease.add_turn(claim)

    def prepare(self, organisation: str, session_id: str) -> None:
        """Prewarm a new session for its first turn, unless this worker is stopping."""
        if not self._services.stopping.is_set():
            self._services.prewarmer.prepare(organisation, session_id)


class _Turn:
    def __init__(self, services: TurnServices, held: HeldTurn, live: LiveTurn, telemetry: TurnTelemetry) -> None:
        self._services = services
        self._claim = claim = held.claim
        self._held = held
        self._live = live
        self._telemetry = telemetry
        self._claimed_at = time.monotonic()
        self._controls = ControlInputs(services.turns, services.nudges, claim, live)
        self._log = FencedLog(services.turns, services.conversations, held, live, telemetry)
        self._resources: TurnResources | None = None
        self._keeps_warm = False
        self._children: TurnChildren | None = None
        self._final_snapshots: Sequence[TreeSnapshot] = ()
        self._final_outputs: OutputChanges | None = None

    async def run(self) -> TurnEnded | RetryTurn:
        result: TurnEnded | RetryTurn | None = None
        try:
            result = await self._run()
            if self._keeps_warm and self._resources is not None and isinstance(result, TurnEnded):
                resources, self._resources = self._resources, None
                self._services.warm_pool.add(self._claim, self._log.entry_count, resources)
            return result
        finally:
            try:
                await self._close_resources()
            finally:
                if self._log.files is not None:
                    # A handover or a retry does not wait for the merging of packs.
                    merge_packs = isinstance(result, TurnEnded) and not self._services.stopping.is_set()
                    await self._log.files.close(merge_packs=merge_packs)

    async def _run(self) -> TurnEnded | RetryTurn:
        claim = self._claim
        if claim.attempt - claim.failures - claim.handovers > self._services.limits.max_attempts:
            message = f"The turn was stopped because {claim.attempt} workers were lost while running it."
            return await self._commit(_failed_outcome("unknown_error", message))
        try:
            async with exclusive_directory(
                self._services.write_leases, self._claim, self._controls, self._held
            ) as may_begin:
                outcome = await self._work() if may_begin else TurnOutcome(status=TurnStatus.INTERRUPTED)
            return await self._commit(outcome)
        except (Fenced, HandOver) as error:
            return _retry_lost_turn(error) if isinstance(error, Fenced) else await self._hand_over()
        except asyncio.CancelledError:
            if self._services.stopping.is_set():
                await self._hand_over()
            raise
        except Temporary as error:
            return await self._retry_or_fail(error.session_error, error.advice, error.retry_after)
        except FootplateError as error:
            kind = error.session_error if isinstance(error, Permanent) else "unknown_error"
            await self._rescue_files()
            return await self._commit(replace(_failed_outcome(kind, error.advice), may_retry=False))
        except Exception:
            log.exception("turn crashed", action="turn.crashed")
            return await self._retry_or_fail(
                "unknown_error", "An internal error occurred. The server's log has the details.", None
            )

    async def _work(self) -> TurnOutcome:
        resources = self._resources = await self._acquire_resources()
        try:
            outcome = await self._run_harness(resources)
            if self._log.files is not None:
                await self._log.files.collect_commits()
        except BaseException as error:
            # A failed turn collects its commits too, while its environment is open. A handed-over turn does it later.
            is_failure = isinstance(error, Exception) and not isinstance(error, Fenced | HandOver)
            if is_failure and self._log.files is not None:
                await self._log.files.collect_commits(max_seconds=RESCUE_SECONDS)
            await self._close_resources()
            raise
        if not self._keeps_warm:
            await self._close_resources()
        await self._take_final_snapshots()
        return outcome

    async def _take_final_snapshots(self) -> None:
        """Take the last snapshots, once all processes that could change files are dead."""
        if self._log.files is not None and self._log.files.may_have_changed:
            self._live.flush()  # reading every file takes longer than an event may wait
            self._final_snapshots = await self._log.files.take_final_snapshots()
            self._final_outputs = await self._log.files.collect_final_outputs()

    async def _rescue_files(self) -> None:
        """Store the files of a turn that did not complete."""
        self._final_outputs = None  # collected again
        if self._log.files is not None and not self._held.lost:
            await self._log.files.rescue_changes(self._services.turns, self._claim)

    async def _acquire_resources(self) -> TurnResources:
        """Return prewarmed or warm resources that match this turn, or open new ones."""
        services = self._services
        claim = self._claim = await fix_base_commits(services.trees, services.turns, self._claim)
        found = await services.prewarmer.acquire(claim) or await services.warm_pool.acquire(claim)
        if found is not None:
            found.environment.restore_shell(claim.shell)
            return found
        check_lease = self._held.check if self._may_open_lazily else None
        return await open_turn_resources(
            services.environments,
            services.models,
            claim,
            deadline=self._held.deadline,
            check_lease=check_lease,
            output_directories=services.output_directories,
        )

    @property
    def _may_open_lazily(self) -> bool:
        """Whether the environment may be opened at its first use.

        Not if opening can be refused, because such a turn must fail before it pays for a model request. Not in a later
        attempt either, because the lost attempt may have changed files. A delivery uses no environment.
        """
        claim, harness = self._claim, self._services.find_harness(self._claim.config.harness)
        if self._delivers:
            return True
        can_be_refused = (
            CONTEXT_KEY in claim.context or claim.config.environment_config != environment_config.EnvironmentConfig()
        )
        return claim.attempt == 1 and not can_be_refused and isinstance(harness, SupportsLazyEnvironment)

    @property
    def _delivers(self) -> bool:
        return self._claim.step is not None and self._claim.step.definition.delivery is not None

    async def _close_resources(self) -> None:
        """Close the turn's resources. All its processes are dead when this returns."""
        if self._resources is not None:
            resources, self._resources = self._resources, None
            await resources.aclose()

    async def _run_harness(self, resources: TurnResources) -> TurnOutcome:
        services, claim = self._services, self._claim
        harness = services.find_harness(claim.config.harness)

        def renew(deadline: float) -> None:
            resources.models.renew(deadline)
            resources.environment.renew(deadline)

        self._held.on_renew = renew
        renew(self._held.deadline)  # warm resources were not renewed while they waited
        self._log.environment = resources.environment
        self._log.files = TurnFiles(
            services.trees,
            claim,
            resources.environment,
            output_directories=services.output_directories,
            each_call=services.snapshot_each_call,
        )
        opens_soon = bool(claim.config.projects) and not self._delivers
        if opens_soon and isinstance(resources.environment, LazyEnvironment):
            resources.environment.open_in_background()  # a checkout takes a while; the model request runs meanwhile
        if (interrupted := await self._set_up_projects(resources)) is not None:
            return interrupted
        context, hooks = await self._build_context(resources)
        await self._controls.check_earlier_interrupts()
        outcome = await self._wait_for_end(asyncio.ensure_future(harness.run(context)))
        if tools := [
            self._log.approval_tools[event_id] for event_id in outcome.pending if event_id in self._log.approval_tools
        ]:
            await hooks.notify_approval_needed(tools)
        return outcome

    async def _wait_for_end(self, task: "asyncio.Future[TurnOutcome]") -> TurnOutcome:
        """Wait for the outcome, and react to interrupts, the time limit and the loss of the turn meanwhile."""
        self._held.on_lost = task.cancel
        async with self._controls.watching(self._held):
            with TurnTimeout(self._claim, self._controls.interrupt, task, elapsed=self._elapsed) as timeout:
                return timeout.apply_to_outcome(await self._wait_for_outcome(task, timeout))

    async def _set_up_projects(self, resources: TurnResources) -> TurnOutcome | None:
        """Run the setups of the session's projects, before files of the input or the agent can be in the environment.
        Return the outcome of the turn if it was interrupted meanwhile.
        """
        services, claim = self._services, self._claim
        if self._delivers or all(project.setup is None for project in claim.config.projects):
            return None
        gate = services.gate_factory.create_gate(claim, resources.environment)
        setups = ProjectSetups(
            services.tree_setup, claim, resources.environment, gate, self._log, seconds=services.setup_seconds
        )
        await self._controls.check_earlier_interrupts()
        outcome = await self._wait_for_end(asyncio.ensure_future(self._run_setups(setups)))
        return None if outcome.status is TurnStatus.COMPLETED else outcome

    async def _run_setups(self, setups: ProjectSetups) -> TurnOutcome:
        """Return a completed outcome, or an interrupted one. The setup is then killed, and runs again later."""
        work = asyncio.ensure_future(setups.run())
        interrupt = asyncio.ensure_future(self._controls.interrupt.wait())
        try:
            await asyncio.wait({work, interrupt}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return TurnOutcome(status=TurnStatus.INTERRUPTED)
            work.result()
            return TurnOutcome(status=TurnStatus.COMPLETED)
        finally:
            interrupt.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    def _keep_warm(self, process: WarmProcess) -> bool:
        if self._resources is not None and self._services.warm_pool.is_enabled:
            self._resources.warm_process = process
            self._keeps_warm = True
        return self._keeps_warm

    async def _build_context(self, resources: TurnResources) -> tuple[TurnContext, TurnHooks]:
        services, claim = self._services, self._claim
        turn_events = await services.turns.turn_events(claim) if claim.attempt > 1 else ()
        self._telemetry.note_earlier_calls(turn_events)
        assert self._log.files is not None
        note_input_file = self._log.files.note_input_file
        gate = services.gate_factory.create_gate(claim, resources.environment)
        attachments = TurnAttachments(
            services.attachment_sources,
            claim.organisation,
            claim.config,
            resources.environment,
            gate,
            find_provider(claim.config.model, {name: one.provider for name, one in resources.models.endpoints.items()}),
            note_input_file,
        )
        messages = await attachments.write_missing_resources(claim, services.turns.last_completed)
        warm_process, resources.warm_process = resources.warm_process, None  # from here on it belongs to the harness
        step_content = await prepare_step_content(claim, services.turns, self._log, turn_events)
        hooks = TurnHooks(gate, attachments)
        self._children = TurnChildren(
            services.children, services.child_cancellation, services.waker, claim, self._log.files
        )
        instructions = await load_instructions(services.trees, claim)
        context = TurnContext(
            organisation=claim.organisation,
            session_id=claim.session_id,
            turn_id=claim.turn_id,
            attempt=claim.attempt,
            config=with_project_agents(claim.config, instructions),
            # Messages that a fork carries, and those about missing files, are for the model: they are no commands.
            content=[*claim.content, *step_content, *messages] if _is_for_model(claim) else step_content,
            step=claim.step,
            history=await services.conversations.load(claim),
            turn_events=turn_events,
            superseded_events=await services.turns.superseded_events(claim)
            if claim.superseded_harness or claim.attempt > 1
            else (),
            log=self._log,
            environment=resources.environment,
            gate=gate,
            interrupt=self._controls.interrupt,
            thread_interrupt=self._controls.thread_interrupt,
            handover=services.stopping,
            claim_steering=self._controls.claim_steering,
            held_approvals=TurnHeldApprovals(services.turns, claim, self._live, hooks),
            resolve_attachments=hooks.resolve_attachments,
            resolve_steering=hooks.resolve_steering,
            context=claim.context,
            author=claim.author,
            endpoints=resources.models.endpoints,
            project_instructions=instructions,
            warm_process=warm_process,
            keep_warm=self._keep_warm,
            children=self._children,
            delivery=create_step_delivery(services.delivery, claim, step_content),
            terminals=SessionTerminals(services.terminal_channels, claim, resources.environment, self._log.store_files),
        )
        return context, hooks

    async def _wait_for_outcome(self, task: "asyncio.Future[TurnOutcome]", turn_timeout: TurnTimeout) -> TurnOutcome:
        if self._held.lost:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self._held.lost:
                raise Fenced(f"Another worker holds session {self._claim.session_id}.") from None
            if turn_timeout.is_cancelled:
                return TurnOutcome(status=TurnStatus.INTERRUPTED)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _hand_over(self) -> RetryTurn:
        """Hand the turn over. Its commands are dead and its work is in the log, so the next worker can start
        immediately.

        This also applies if the turn was cancelled because a tool or a model took longer than the worker's drain time.
        """
        await failpoints.hit("before_hand_over")
        await self._rescue_files()
        await self._services.turns.hand_over(self._claim)
        self._telemetry.record_handover()
        log.info("turn handed over to another worker", action="turn.handed_over")
        return _RETRY_AFTER_HANDOVER

    async def _commit(self, outcome: TurnOutcome) -> TurnEnded | RetryTurn:
        await failpoints.hit("before_turn_commit")
        try:
            finished = await self._finish(outcome)
        except Fenced as error:
            return _retry_lost_turn(error)
        self._telemetry.record_outcome(outcome)
        if self._log.files is not None:
            self._log.files.mark_committed(self._final_snapshots)
        await failpoints.hit("after_turn_commit")
        await self._live.publish(finished.positions)
        self._keeps_warm = self._keeps_warm and not finished.has_ended
        await wake_sessions(self._services.waker, finished.to_wake)
        if self._children is not None and outcome.status is not TurnStatus.AWAITING:
            await self._children.cancel_remaining()
        if finished.retry_after is not None and finished.has_more:
            return RetryTurn(finished.retry_after, "The step failed, and is repeated.")
        return TurnEnded(has_more=finished.has_more)

    async def _finish(self, outcome: TurnOutcome) -> FinishedTurn:
        finish, claim, files = self._services.turns.finish, self._claim, self._log.files
        if files is None:  # the turn ends before it has files: what an earlier attempt left is published
            outputs = None if claim.files.outputs.is_published else OutputChanges(omitted=None)
            outcome = with_commits(outcome, claim.config.projects, claim.files.snapshots)
            return await finish(claim, outcome, (), outputs)
        outcome = files.record_commits(outcome, self._final_snapshots)
        return await files.commit_outputs(
            lambda changes: finish(claim, outcome, self._final_snapshots, changes),
            files.outputs_to_publish(self._final_outputs),
        )

    @property
    def _elapsed(self) -> float:
        """Seconds since the claim."""
        return time.monotonic() - self._claimed_at

    async def _retry_or_fail(self, error_type: str, message: str, retry_after: float | None) -> TurnEnded | RetryTurn:
        """Handle a temporary failure: schedule a retry, within the limits."""
        claim, limits = self._claim, self._services.limits
        await self._rescue_files()
        max_failures = limits.max_failures if claim.config.max_retries is None else claim.config.max_retries
        if claim.failures >= max_failures:
            return await self._commit(_failed_outcome(error_type, message))
        try:
            await self._live.publish(await self._services.turns.reschedule(claim, error_type, message))
        except Fenced as error:
            return _retry_lost_turn(error)
        self._telemetry.record_retry(error_type)
        first_wait = limits.retry_wait if claim.config.retry_delay_seconds is None else claim.config.retry_delay_seconds
        wait = min(first_wait * 2**claim.failures, max(limits.max_retry_wait, first_wait))
        wait = max(wait, retry_after or 0.0, _MIN_RETRY_WAIT)
        if claim.remaining_seconds is not None:
            # Not longer than the turn's remaining time: the next attempt then reports the timeout.
            wait = min(wait, max(claim.remaining_seconds - self._elapsed, 0.01))
        return RetryTurn(wait, message)


def _is_for_model(claim: Claim) -> bool:
    """Whether the input of the turn is a message, or a step that the agent's harness runs."""
    return claim.step is None or claim.step.definition.kind is StepKind.PROMPT


def _retry_lost_turn(error: Fenced) -> RetryTurn:
    """Retry a lost turn. Temporal ignores this if another worker has the turn; if only our lease expired, it is
    retried.
    """
    return RetryTurn(_RETRY_AFTER_LOSS, error.message)


def _failed_outcome(error_type: str, message: str) -> TurnOutcome:
    return TurnOutcome(status=TurnStatus.FAILED, error_type=error_type, error_message=message)
