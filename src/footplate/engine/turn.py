"""Runs one turn in this process: claims it, runs the harness, and commits the outcome.

The harness decides; everything that it writes goes through `FencedLog`, fenced by the claim's epoch. The turn's
commands are always dead before its last commit, which is one transaction.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain import environments
from footplate.domain.errors import Fenced, FootplateError, HandOver, Permanent, Temporary
from footplate.domain.leases import WriteLeases
from footplate.domain.named_directories import KEY
from footplate.domain.parts import Sources
from footplate.domain.ports import Harness, Kept, OpensLate, TurnContext
from footplate.domain.running import (
    Claim,
    ClaimStore,
    Environments,
    Gates,
    LiveTurn,
    LiveTurns,
    ModelAccess,
    Nothing,
    Nudges,
    Trees,
    TurnStore,
)
from footplate.domain.snapshots import TreeSnapshot
from footplate.domain.turns import Outcome, TurnStatus
from footplate.engine.answers import HeldAnswers
from footplate.engine.bases import brought, decided
from footplate.engine.clock import TurnClock
from footplate.engine.controls import Controls
from footplate.engine.conversations import Conversations
from footplate.engine.fenced_log import FencedLog
from footplate.engine.files import SOON, TurnFiles
from footplate.engine.inputs import NoSources, TurnInputs
from footplate.engine.kept import KeptHarnesses
from footplate.engine.late_environment import LateEnvironment
from footplate.engine.leases import HeldTurn, LeaseKeeper
from footplate.engine.lodging import Lodging, lodge
from footplate.engine.moments import Moments
from footplate.engine.observed import TurnWatch
from footplate.engine.slots import Slots
from footplate.engine.writing import alone

log = structlog.get_logger(__name__)

_AFTER_LOSS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    lease: float
    max_failures: int
    max_attempts: int
    retry_wait: float
    retry_wait_most: float


@dataclass(frozen=True, slots=True)
class Ended:
    more: bool
    """Whether there is another turn to run."""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The turn must be retried later. Temporal does that."""

    after: float
    reason: str


_HANDED_OVER: Final = TryAgain(0.01, HandOver().message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    claims: ClaimStore
    turns: TurnStore
    live: LiveTurns
    nudges: Nudges
    environments: Environments
    gates: Gates
    trees: Trees | None = None
    """None: there are no projects, and files exist only on this host."""
    writers: WriteLeases | None = None
    """None: sessions cannot name directories, so no two sessions share one."""
    files_of_each_call: bool = True
    """Take snapshots after each call, not only at the start and the end of a turn."""
    sources: Sources = field(default_factory=NoSources)
    """Loads attachments that inputs refer to."""
    models: ModelAccess
    harness: Callable[[str], Harness]
    leases: LeaseKeeper
    conversations: Conversations
    kept: KeptHarnesses
    slots: Slots
    limits: Limits
    stopping: asyncio.Event
    """Set when the worker is stopping: turns are handed over, and none begins."""


class TurnRunner:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self, organisation: str, session_id: str) -> Ended | TryAgain:
        parts = self._parts
        parts.leases.check()
        if parts.stopping.is_set():
            return _HANDED_OVER
        before = parts.leases.held(session_id)
        claim = await parts.claims.claim(organisation, session_id, parts.leases.worker)
        live = parts.live.turn(organisation, session_id)
        await live.publish(claim.positions)
        if isinstance(claim, Nothing):
            await live.aclose()
            return Ended(more=False)
        if claim.attempt > 1:
            live.flush()  # the next event may take long
        held = parts.leases.hold(claim)
        watch = TurnWatch(claim)
        try:
            with watch.running():
                await self._old_holder_is_dead(claim, before)
                return await _Turn(parts, claim, held, live, watch).run()
        finally:
            parts.leases.release(held)
            await live.aclose()

    def prepare(self, organisation: str, session_id: str) -> None:
        """Prewarm a new session for its first turn, unless this worker is stopping."""
        if not self._parts.stopping.is_set():
            self._parts.slots.prepare(organisation, session_id)

    async def _old_holder_is_dead(self, claim: Claim, before: HeldTurn | None) -> None:
        """Wait until no command of the last attempt can be alive."""
        if before is not None:
            before.lose()
            await before.done.wait()
        elif claim.old_holder_lives:
            # The old holder sees the new epoch at its next renewal; without one, its commands die in this time.
            await asyncio.sleep(self._parts.limits.lease)


class _Turn:
    def __init__(self, parts: Parts, claim: Claim, held: HeldTurn, live: LiveTurn, watch: TurnWatch) -> None:
        self._parts = parts
        self._claim = claim
        self._held = held
        self._live = live
        self._observed = watch
        self._claimed = time.monotonic()
        self._controls = Controls(parts.turns, parts.nudges, claim, live)
        self._log = FencedLog(parts.turns, parts.conversations, held, live, watch)
        self._lodging: Lodging | None = None
        self._keeps = False
        self._last_files: Sequence[TreeSnapshot] = ()

    async def run(self) -> Ended | TryAgain:
        result: Ended | TryAgain | None = None
        try:
            result = await self._run()
            if self._keeps and self._lodging is not None and isinstance(result, Ended):
                lodging, self._lodging = self._lodging, None
                self._parts.kept.put(self._claim, self._log.entries, lodging)
            return result
        finally:
            try:
                await self._leave()
            finally:
                if self._log.files is not None:
                    # A handover or a retry does not wait for the merging of packs.
                    merge_packs = isinstance(result, Ended) and not self._parts.stopping.is_set()
                    await self._log.files.close(merge_packs=merge_packs)

    async def _run(self) -> Ended | TryAgain:
        claim = self._claim
        if claim.attempt - claim.failures - claim.handed_over > self._parts.limits.max_attempts:
            lost = f"{claim.attempt} workers were lost while they ran this turn, so it is not retried."
            return await self._commit(_failure("unknown_error", lost))
        try:
            async with alone(self._parts.writers, self._claim, self._controls, self._held) as begins:
                outcome = await self._work() if begins else Outcome(status=TurnStatus.INTERRUPTED)
            return await self._commit(outcome)
        except (Fenced, HandOver) as error:
            return _lost(error) if isinstance(error, Fenced) else await self._hand_over()
        except asyncio.CancelledError:
            if self._parts.stopping.is_set():
                await self._hand_over()
            raise
        except Temporary as error:
            return await self._failed(error.session_error, error.advice, error.retry_after)
        except FootplateError as error:
            kind = error.session_error if isinstance(error, Permanent) else "unknown_error"
            await self._rescue_files()
            return await self._commit(_failure(kind, error.advice))
        except Exception:
            log.exception("turn crashed", action="turn.crashed")
            return await self._failed(
                "unknown_error", "An internal error occurred. The server's log has the details.", None
            )

    async def _work(self) -> Outcome:
        lodging = self._lodging = await self._lodge()
        try:
            outcome = await self._work_in(lodging)
            if self._log.files is not None:
                await self._log.files.collect()
        except BaseException as error:
            # A failed turn collects its commits too, while its environment is open. A handed-over turn does it later.
            fails = isinstance(error, Exception) and not isinstance(error, Fenced | HandOver)
            if fails and self._log.files is not None:
                await self._log.files.collect(within=SOON)
            await self._leave()
            raise
        if not self._keeps:
            await self._leave()
        await self._look_at_files()
        return outcome

    async def _look_at_files(self) -> None:
        """Take the last snapshots, once all processes that could change files are dead."""
        if self._log.files is not None and self._log.files.may_have_changed:
            self._live.flush()  # reading every file takes longer than an event may wait
            self._last_files = await self._log.files.at_the_end()

    async def _rescue_files(self) -> None:
        """Store the files of a turn that did not complete."""
        if self._log.files is not None and not self._held.lost:
            await self._log.files.rescue(self._parts.turns, self._claim)

    async def _lodge(self) -> Lodging:
        """Return prewarmed or warm resources that match this turn, or open new ones."""
        parts = self._parts
        claim = self._claim = await decided(parts.trees, parts.turns, self._claim)
        found = await parts.slots.take(claim) or await parts.kept.take(claim)
        check_lease = self._held.check if self._may_open_late else None
        return found or await lodge(
            parts.environments, parts.models, claim, deadline=self._held.deadline, check_lease=check_lease
        )

    @property
    def _may_open_late(self) -> bool:
        """Whether the environment may be opened at its first use.

        Not if opening can be refused, because such a turn must fail before it pays for a model request. Not in a later
        attempt either, because the lost attempt may have changed files.
        """
        claim, harness = self._claim, self._parts.harness(self._claim.config.harness)
        can_be_refused = (
            KEY in claim.context or environments.load(claim.config.environment) != environments.EnvironmentConfig()
        )
        return claim.attempt == 1 and not can_be_refused and isinstance(harness, OpensLate)

    async def _leave(self) -> None:
        """Close the turn's resources. All its processes are dead when this returns."""
        if self._lodging is not None:
            lodging, self._lodging = self._lodging, None
            await lodging.aclose()

    async def _work_in(self, lodging: Lodging) -> Outcome:
        parts, claim = self._parts, self._claim
        harness = parts.harness(claim.config.harness)

        def renew(deadline: float) -> None:
            lodging.models.renew(deadline)
            lodging.environment.renew(deadline)

        self._held.on_renew = renew
        renew(self._held.deadline)  # warm resources were not renewed while they waited
        self._log.files = TurnFiles(parts.trees, claim, lodging.environment, each_call=parts.files_of_each_call)
        if claim.config.projects and isinstance(lodging.environment, LateEnvironment):
            lodging.environment.open_in_background()  # a checkout takes a while; the model request runs meanwhile
        context, moments = await self._context(lodging)
        task = asyncio.ensure_future(harness.run(context))
        self._held.on_lost = task.cancel
        async with self._controls.heeded(self._held):
            with TurnClock(claim, self._controls.interrupt, task, elapsed=self._used) as clock:
                outcome = clock.judge(await self._result(task, clock))
        if tools := [self._log.asked[event_id] for event_id in outcome.pending if event_id in self._log.asked]:
            await moments.asked(tools)
        return outcome

    def _keep(self, harness: Kept) -> bool:
        if self._lodging is not None and self._parts.kept.welcome:
            self._lodging.harness = harness
            self._keeps = True
        return self._keeps

    async def _context(self, lodging: Lodging) -> tuple[TurnContext, Moments]:
        claim = self._claim
        turn_events = await self._parts.turns.turn_events(claim) if claim.attempt > 1 else ()
        self._observed.resumed(turn_events)
        assert self._log.files is not None
        given = self._log.files.given
        inputs = TurnInputs(self._parts.sources, claim.organisation, claim.config, lodging.environment, given)
        told = await inputs.mount(claim, self._parts.turns.last_completed)
        kept, lodging.harness = lodging.harness, None  # from here on it belongs to the harness
        gate = self._parts.gates.gate(claim, lodging.environment)
        moments = Moments(gate, inputs)
        context = TurnContext(
            organisation=claim.organisation,
            session_id=claim.session_id,
            turn_id=claim.turn_id,
            attempt=claim.attempt,
            config=claim.config,
            content=[*claim.content, *told],
            history=await self._parts.conversations.load(claim),
            turn_events=turn_events,
            left=await self._parts.turns.left(claim) if claim.superseded or claim.attempt > 1 else (),
            log=self._log,
            environment=lodging.environment,
            gate=gate,
            interrupt=self._controls.interrupt,
            handover=self._parts.stopping,
            take_steering=self._controls.take_steering,
            answers=HeldAnswers(self._parts.turns, claim, self._live, moments),
            resolve=moments.resolve,
            resolve_steering=moments.resolve_steering,
            context=claim.context,
            endpoints=lodging.models.endpoints,
            brought=await brought(self._parts.trees, claim),
            kept=kept,
            keep=self._keep,
        )
        return context, moments

    async def _result(self, task: "asyncio.Future[Outcome]", clock: TurnClock) -> Outcome:
        if self._held.lost:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self._held.lost:
                raise Fenced(f"Another worker holds session {self._claim.session_id}.") from None
            if clock.cut:
                return Outcome(status=TurnStatus.INTERRUPTED)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _hand_over(self) -> TryAgain:
        """Hand the turn over. Its commands are dead and its work is in the log, so the next worker can start
        immediately.

        This also applies if the turn was cancelled because a tool or a model took longer than the worker's drain time.
        """
        await failpoints.hit("before_hand_over")
        await self._rescue_files()
        await self._parts.turns.hand_over(self._claim)
        self._observed.handed_over()
        log.info("turn handed over", action="turn.handed_over")
        return _HANDED_OVER

    async def _commit(self, outcome: Outcome) -> Ended | TryAgain:
        await failpoints.hit("before_turn_commit")
        try:
            positions, more = await self._parts.turns.finish(self._claim, outcome, self._last_files)
        except Fenced as error:
            return _lost(error)
        self._observed.ended(outcome)
        await failpoints.hit("after_turn_commit")
        await self._live.publish(positions)
        return Ended(more=more)

    @property
    def _used(self) -> float:
        """Seconds since the claim."""
        return time.monotonic() - self._claimed

    async def _failed(self, error_type: str, message: str, retry_after: float | None) -> Ended | TryAgain:
        """Handle a temporary failure: schedule a retry, within the limits."""
        claim, limits = self._claim, self._parts.limits
        await self._rescue_files()
        most = limits.max_failures if claim.config.max_retries is None else claim.config.max_retries
        if claim.failures >= most:
            return await self._commit(_failure(error_type, message))
        try:
            await self._live.publish(await self._parts.turns.reschedule(claim, error_type, message))
        except Fenced as error:
            return _lost(error)
        self._observed.put_off(error_type)
        wait = min(limits.retry_wait * 2**claim.failures, limits.retry_wait_most)
        wait = max(wait, retry_after or 0.0)
        if claim.seconds_left is not None:
            # Not longer than the turn's remaining time: the next attempt then reports the timeout.
            wait = min(wait, max(claim.seconds_left - self._used, 0.01))
        return TryAgain(wait, message)


def _lost(error: Fenced) -> TryAgain:
    """Retry a lost turn. Temporal ignores this if another worker has the turn; if only our lease expired, it is
    retried.
    """
    return TryAgain(_AFTER_LOSS, error.message)


def _failure(error_type: str, message: str) -> Outcome:
    return Outcome(status=TurnStatus.FAILED, error_type=error_type, error_message=message)
