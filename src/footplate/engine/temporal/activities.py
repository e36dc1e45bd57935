"""The Temporal activities of a worker: running a turn, prewarming a session, and the sweep.

The sweep is a periodic job that wakes sessions whose wake signal or worker was lost, and starts maintenance tasks, for
example the sealing of audit entries.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from footplate.domain.errors import Unavailable
from footplate.domain.ports.engine import Chore, SweepStore, Waker
from footplate.engine.temporal.workflows import PREPARE, RUN_TURN, SWEEP, SessionRef
from footplate.engine.turn.runner import MoveTurn, RetryTurn, TurnEnded, TurnRunner
from footplate.engine.wake_sessions import wake_overdue_sessions

log = structlog.get_logger(__name__)

_STALE_AFTER: Final = timedelta(seconds=1)
_RPC_TIMEOUT: Final = timedelta(seconds=5)
IMMEDIATELY: Final = timedelta(milliseconds=10)
"""Set explicitly, because Temporal's default delay grows with the number of attempts."""


class TurnActivities:
    def __init__(
        self, runner: TurnRunner, *, heartbeat_timeout: float, drain: float = 0.0, max_turns: int | None = None
    ) -> None:
        """`drain`: seconds that a turn may go on while the worker stops. `max_turns`: of all task queues together, if
        there are several. Their common slots prevent most turns beyond it (`turn_slots.py`).
        """
        self._runner = runner
        self._interval = heartbeat_timeout / 4
        self._drain = drain
        self._max_turns = max_turns
        self._turn_count = 0

    @activity.defn(name=RUN_TURN)
    async def run_turn(self, session: SessionRef) -> bool | str:
        """Claim the session's next turn and run it to its end. Returns True if there is another turn to run, or the
        backend that the turn needs if this worker does not offer it.
        """
        if self._max_turns is not None and self._turn_count >= self._max_turns:
            message = "This worker runs as many turns as it may; another worker starts the turn."
            raise retryable_error(message, "busy", after=IMMEDIATELY)
        self._turn_count += 1
        try:
            with structlog.contextvars.bound_contextvars(organisation=session.organisation, session=session.session_id):
                return await self._run_turn(session)
        finally:
            self._turn_count -= 1

    @activity.defn(name=PREPARE)
    async def prepare(self, session: SessionRef) -> None:
        """Start to prepare the session in the background."""
        self._runner.prepare(session.organisation, session.session_id)

    async def _run_turn(self, session: SessionRef) -> bool | str:
        await _check_task_is_current()
        async with heartbeat(self._interval):
            try:
                result = await self._run_to_end(session)
            except asyncio.CancelledError:
                message = "The worker is stopping; another worker continues the turn."
                raise retryable_error(message, "handover", after=IMMEDIATELY) from None
            except Unavailable as error:
                raise retryable_error(error.message, error.code) from error
        if isinstance(result, RetryTurn):
            raise retryable_error(result.reason, "try_again", after=timedelta(seconds=result.delay))
        return result.backend if isinstance(result, MoveTurn) else result.has_more

    async def _run_to_end(self, session: SessionRef) -> TurnEnded | RetryTurn | MoveTurn:
        """Runs the turn until it ends or this worker stops, even if Temporal cancels the activity.

        Temporal cancels an activity that it does not know, for example after it has lost its state or was restored from
        a copy. The turn is not lost then: its claim in the database decides whether it may continue.
        """
        turn = asyncio.create_task(self._runner.run(session.organisation, session.session_id))
        stopping = asyncio.create_task(self._cancel_after_drain(turn))
        try:
            while not turn.done():
                try:
                    await asyncio.wait([turn])
                except asyncio.CancelledError:
                    if not activity.is_worker_shutdown():
                        log.warning(
                            "Temporal cancelled the activity of a running turn; the turn continues",
                            action="turn.orphaned",
                            reason=repr(activity.cancellation_details()),
                        )
        finally:
            stopping.cancel()
        return turn.result()

    async def _cancel_after_drain(self, turn: "asyncio.Task[TurnEnded | RetryTurn | MoveTurn]") -> None:
        await activity.wait_for_worker_shutdown()
        await asyncio.sleep(self._drain)
        turn.cancel()


@asynccontextmanager
async def heartbeat(interval: float) -> AsyncIterator[None]:
    """Send heartbeats of the activity while the context is open."""

    async def beat() -> None:
        # The first heartbeat is delayed: most turns end before it, and each one is a write in Temporal's database.
        while True:
            await asyncio.sleep(interval)
            activity.heartbeat()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


async def _check_task_is_current() -> None:
    """Refuse a task that this process received long ago and only sees now, because it was suspended.

    Another worker has the turn by now, and a claim would fence it. The clock may be wrong; it only decides whether
    Temporal is asked.
    """
    info = activity.info()
    if datetime.now(UTC) - info.started_time < _STALE_AFTER:
        return
    try:
        await (
            activity.client().get_async_activity_handle(task_token=info.task_token).heartbeat(rpc_timeout=_RPC_TIMEOUT)
        )
    except (RPCError, AsyncActivityCancelledError) as error:
        log.warning("rejected a stale task for a turn", action="turn.stale", workflow=info.workflow_id)
        raise retryable_error("Temporal has assigned this turn to another worker.", "stale") from error


def retryable_error(message: str, kind: str, *, after: timedelta | None = None) -> ApplicationError:
    """Build an error that Temporal retries, without a stack trace in the worker's log."""
    return ApplicationError(message, type=kind, next_retry_delay=after, category=ApplicationErrorCategory.BENIGN)


class SweepActivities:
    def __init__(
        self, store: SweepStore, waker: Waker, chores: Sequence[Chore] = (), *, urgent: Sequence[Chore] = ()
    ) -> None:
        """`urgent` chores are short, and never wait for the others, which may take minutes."""
        self._store = store
        self._waker = waker
        self._chore_groups = [group for group in (urgent, chores) if group]
        self._chore_tasks: dict[int, asyncio.Task[None]] = {}

    @activity.defn(name=SWEEP)
    async def sweep(self) -> None:
        """Wake sessions whose wake signal or worker was lost, delete expired records, and start the chores."""
        overdue = await self._store.find_sessions_to_wake(older_than=5, lost_for=60, limit=1000)
        await wake_overdue_sessions(self._waker, overdue)
        await self._store.delete_stale_rows()
        for number, group in enumerate(self._chore_groups):
            # In the background: a chore may take minutes, and the next sweep must not wait for it.
            if number not in self._chore_tasks or self._chore_tasks[number].done():
                self._chore_tasks[number] = asyncio.create_task(
                    self._run_chores(group), name="chores", context=Context()
                )

    async def aclose(self) -> None:
        for task in self._chore_tasks.values():
            task.cancel()
        await asyncio.gather(*self._chore_tasks.values(), return_exceptions=True)

    async def _run_chores(self, group: Sequence[Chore]) -> None:
        for chore in group:
            try:
                await chore.run()
            except Exception:
                log.warning(
                    "a sweep task failed; the next sweep retries it",
                    action="sweep.chore_failed",
                    task=type(chore).__name__,
                    exc_info=True,
                )
