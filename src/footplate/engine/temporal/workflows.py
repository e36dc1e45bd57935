"""The Temporal workflows. `SessionWorkflow` runs the turns of a session. `SweepWorkflow` runs the sweep.
`DeploymentWorkflow` starts a run of a deployment.

The sweep is a periodic job that wakes sessions whose wake signal or worker was lost, and starts maintenance tasks, for
example the sealing of audit entries.

The histories of the workflows contain ids and flags, never a prompt, an output or a token, and each turn adds a small,
fixed number of history events.

No wake signal is lost while `SessionWorkflow` completes. Temporal refuses to complete a workflow that has an unseen
signal. After completion, the API's request (signal-with-start) starts a new run of the workflow.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

RUN_TURN = "run_turn"
SWEEP = "sweep"
FIRE_DEPLOYMENT = "fire_deployment"
WAKE = "wake"
PREPARE = "prepare"
_LOCAL_SWEEP = "local-sweep"
_BACKEND_WAIT = timedelta(seconds=60)
"""How long a turn waits for a worker that offers its backend, before any worker checks what the session needs now."""


def backend_queue(task_queue: str, backend: str) -> str:
    """Return the task queue of turns that need a backend which not every worker offers."""
    return f"{task_queue}-backend-{backend}"


@dataclass(frozen=True)
class SessionInput:
    organisation: str
    session_id: str
    linger: float
    """Seconds that an idle workflow stays open, so that the next turn starts sooner."""
    heartbeat_timeout: float
    woken: bool = False
    """The wake flag, passed on by continue-as-new."""
    ends_when_idle: bool = False
    """Whether it completes with the turn instead of lingering. Histories without this field linger."""
    priority: int | None = None
    """The priority of its turns, from 1 to 5. Histories without this field have Temporal's default, which is 3."""


@dataclass(frozen=True)
class ScheduledDeployment:
    """A deployment and the revision of its schedule, as the schedule in Temporal knows it."""

    organisation: str
    deployment_id: str
    revision: int
    expression: str
    timezone: str
    catch_up_seconds: int
    offsets: list[int]
    """The offsets of the time zone from UTC, in minutes."""


@dataclass(frozen=True)
class SessionRef:
    organisation: str
    session_id: str


@workflow.defn(name="SessionWorkflow")
class SessionWorkflow:
    def __init__(self) -> None:
        self._woken = False
        self._prewarm_requested = False
        self._backend: str | None = None
        """The backend of the session's last turn, if a worker was asked for it that does not offer it."""

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        self._woken = True

    @workflow.signal(name=PREPARE)
    def prepare(self) -> None:
        self._prewarm_requested = True

    @workflow.run
    async def run(self, session: SessionInput) -> None:
        self._woken = self._woken or session.woken
        while True:
            try:
                await workflow.wait_condition(
                    lambda: self._woken or self._prewarm_requested, timeout=timedelta(seconds=session.linger)
                )
            except TimeoutError:
                if not self._woken:
                    return
            self._prewarm_requested = False
            if not self._woken:
                await _prepare(SessionRef(session.organisation, session.session_id))
                continue
            self._woken = False
            more = await self._run_turn(session)
            self._woken = self._woken or more
            if session.ends_when_idle and not self._woken:
                return
            # Only between turns, so that an activity never outlives the run that started it.
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(replace(session, woken=self._woken))

    async def _run_turn(self, session: SessionInput) -> bool:
        """Run the next turn. Returns True if there is another one, or if this one has to run on another queue."""
        backend = self._backend
        try:
            result: bool | str = await workflow.execute_activity(
                RUN_TURN,
                SessionRef(session.organisation, session.session_id),
                task_queue=None if backend is None else backend_queue(workflow.info().task_queue, backend),
                schedule_to_start_timeout=None if backend is None else _BACKEND_WAIT,
                start_to_close_timeout=timedelta(days=7),
                heartbeat_timeout=timedelta(seconds=session.heartbeat_timeout),
                retry_policy=_RETRY,
                priority=Priority(priority_key=session.priority, fairness_key=session.organisation[:64]),
            )
        except ActivityError as error:
            if not isinstance(error.cause, ActivityTimeout) or error.cause.type is not TimeoutType.SCHEDULE_TO_START:
                raise
            self._backend = None
            return True
        if isinstance(result, str):
            self._backend = result
            return True
        return result


async def _prepare(session: SessionRef) -> None:
    """Prewarm the session on the worker that caches this workflow, where its turn will run. Failures are ignored."""
    with suppress(ActivityError):
        await workflow.execute_local_activity(
            PREPARE, session, start_to_close_timeout=timedelta(seconds=5), retry_policy=RetryPolicy(maximum_attempts=1)
        )


@workflow.defn(name="SweepWorkflow")
class SweepWorkflow:
    """Runs the sweep once. Started by a schedule."""

    @workflow.run
    async def run(self) -> None:
        # A local activity has its own slot, so turns that fill every slot of a worker do not delay the sweep.
        limit, once = timedelta(seconds=60), RetryPolicy(maximum_attempts=1)
        if workflow.patched(_LOCAL_SWEEP):
            await workflow.execute_local_activity(SWEEP, start_to_close_timeout=limit, retry_policy=once)
        else:
            await workflow.execute_activity(SWEEP, start_to_close_timeout=limit, retry_policy=once)


@workflow.defn(name="DeploymentWorkflow")
class DeploymentWorkflow:
    """Starts the run of one time of a schedule, which starts this workflow. If the worker dies, another one repeats it,
    and the database decides whether there is something left to do.
    """

    @workflow.run
    async def run(self, deployment: ScheduledDeployment) -> None:
        scheduled_at = workflow.info().typed_search_attributes.get(_SCHEDULED_START) or workflow.info().start_time
        # A local activity has its own slot, so turns that fill every slot of a worker do not delay schedules.
        await workflow.execute_local_activity(
            FIRE_DEPLOYMENT,
            args=[deployment, scheduled_at.isoformat()],
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=10)),
        )


_SCHEDULED_START = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")

# A lost worker's turn is retried soon. The activity itself sets the delay after a provider's failure.
_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=10)
)
