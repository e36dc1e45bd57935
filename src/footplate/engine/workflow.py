"""The workflows. They hold ids and flags, never a prompt, an output or a token: a turn adds a fixed, small number of
history events whatever happens inside it.

The race that `SessionWorkflow` must not lose: a wake that arrives while it completes. It checks the flag with no await
before it returns; Temporal refuses to complete a workflow while a signal is unseen, and the api always signals with
start, so a wake is either seen by this run or starts the next one.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError

RUN_TURN = "run_turn"
SWEEP = "sweep"
WAKE = "wake"
PREPARE = "prepare"
_LOCAL_SWEEP = "local-sweep"


@dataclass(frozen=True)
class SessionInput:
    organisation: str
    session_id: str
    linger: float
    """Seconds that an idle workflow stays open, so that the next turn starts sooner."""
    heartbeat_timeout: float
    woken: bool = False
    """Carried over by continue-as-new."""
    ends_when_idle: bool = False
    """It completes with the turn instead of lingering. Histories that were recorded without this field linger."""


@dataclass(frozen=True)
class SessionRef:
    organisation: str
    session_id: str


@workflow.defn(name="SessionWorkflow")
class SessionWorkflow:
    def __init__(self) -> None:
        self._woken = False
        self._expected = False

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        self._woken = True

    @workflow.signal(name=PREPARE)
    def prepare(self) -> None:
        self._expected = True

    @workflow.run
    async def run(self, session: SessionInput) -> None:
        self._woken = self._woken or session.woken
        while True:
            try:
                await workflow.wait_condition(
                    lambda: self._woken or self._expected, timeout=timedelta(seconds=session.linger)
                )
            except TimeoutError:
                if not self._woken:
                    return
            self._expected = False
            if not self._woken:
                await _prepare(SessionRef(session.organisation, session.session_id))
                continue
            self._woken = False
            more: bool = await workflow.execute_activity(
                RUN_TURN,
                SessionRef(session.organisation, session.session_id),
                start_to_close_timeout=timedelta(days=7),
                heartbeat_timeout=timedelta(seconds=session.heartbeat_timeout),
                retry_policy=_RETRY,
                priority=Priority(fairness_key=session.organisation[:64]),
                result_type=bool,
            )
            self._woken = self._woken or more
            if session.ends_when_idle and not self._woken:
                return
            # Between turns only: an activity never outlives the run that started it.
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(replace(session, woken=self._woken))


async def _prepare(session: SessionRef) -> None:
    """On the worker that has this workflow at hand: as long as it does, the next turn begins there. Whether it came to
    anything is nobody's concern.
    """
    with suppress(ActivityError):
        await workflow.execute_local_activity(
            PREPARE, session, start_to_close_timeout=timedelta(seconds=5), retry_policy=RetryPolicy(maximum_attempts=1)
        )


@workflow.defn(name="SweepWorkflow")
class SweepWorkflow:
    """Started by a schedule: wakes what nobody woke."""

    @workflow.run
    async def run(self) -> None:
        # A local activity has a place of its own: turns that take every place of a worker do not hold up the sweep.
        limit, once = timedelta(seconds=60), RetryPolicy(maximum_attempts=1)
        if workflow.patched(_LOCAL_SWEEP):
            await workflow.execute_local_activity(SWEEP, start_to_close_timeout=limit, retry_policy=once)
        else:
            await workflow.execute_activity(SWEEP, start_to_close_timeout=limit, retry_policy=once)


# A lost worker's turn is taken up soon; waits after a provider's failure are set by the activity itself.
_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=10)
)
