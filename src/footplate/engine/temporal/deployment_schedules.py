"""Updates the schedules in Temporal after changes of deployments, and starts the runs of their times.

The row of a deployment is the truth. After each change of a row, `apply` creates, changes or deletes the schedule. The
sweep repeats what was not applied, and compares some schedules in each round, so a schedule that Temporal has lost, or
that was changed there, is repaired.

Temporal starts a workflow for each minute in UTC that may be a time of the schedule, whether or not an earlier one has
ended. Minutes that do not match are ignored, and the store decides what happens at the others.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio import activity
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
)
from temporalio.client import ScheduleState as TemporalState
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from footplate.config import Settings
from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.ports.deployments import FiringStore, ScheduleStore
from footplate.domain.ports.engine import Chore
from footplate.domain.sessions.cron import CronSchedule, UtcCalendar
from footplate.domain.sessions.deployments import ScheduleState
from footplate.engine.bounded_concurrency import call_for_each
from footplate.engine.temporal.workflows import FIRE_DEPLOYMENT, DeploymentWorkflow, ScheduledDeployment

log = structlog.get_logger(__name__)

_RPC_TIMEOUT: Final = timedelta(seconds=5)
_MAX_APPLIED: Final = 100
_MAX_CHECKED: Final = 20
"""Schedules that are compared with Temporal in each round of the sweep."""
_CONCURRENCY: Final = 4


def schedule_id(organisation: str, deployment_id: str) -> str:
    return f"deployment/{organisation}/{deployment_id}"


async def find_engine_times(client: Client, identity: str, start: datetime, end: datetime) -> Sequence[datetime]:
    """Return the times in a period at which Temporal starts the workflow of a schedule."""
    request = ListScheduleMatchingTimesRequest(namespace=client.namespace, schedule_id=identity)
    request.start_time.FromDatetime(start)
    request.end_time.FromDatetime(end)
    found = await client.workflow_service.list_schedule_matching_times(request, timeout=_RPC_TIMEOUT)
    return [time.ToDatetime(tzinfo=UTC) for time in found.start_time]


class DeploymentSchedules(Chore):
    def __init__(self, client: Client, settings: Settings, store: ScheduleStore) -> None:
        self._client = client
        self._queue = settings.task_queue
        self._store = store

    async def apply(self, deployment_id: str) -> None:
        """Update the schedule in Temporal of a deployment that has changed."""
        state = await self._store.load(deployment_id)
        if state is not None and not state.is_applied:
            await self._apply(state)

    async def repair(self, organisation: str, deployment_id: str) -> None:
        """Update a schedule that has fired from its deployment. Deletes it if there is no such deployment."""
        state = await self._store.load(deployment_id)
        if state is None:
            await self._delete(self._client.get_schedule_handle(schedule_id(organisation, deployment_id)))
        else:
            await self._apply(state)

    async def run(self) -> None:
        """Apply what was not applied, and compare some schedules with Temporal."""
        unapplied = await self._store.find_unapplied(_MAX_APPLIED)
        await call_for_each(unapplied, self._apply_or_log, concurrency=_CONCURRENCY)
        unchecked = await self._store.find_unchecked(_MAX_CHECKED)
        await call_for_each(unchecked, self._check_or_log, concurrency=_CONCURRENCY)

    async def _apply_or_log(self, deployment_id: str) -> None:
        try:
            await self.apply(deployment_id)
        except FootplateError as error:
            log.warning(
                "a schedule could not be set; the next sweep retries it",
                action="schedule.unapplied",
                deployment=deployment_id,
                reason=error.message,
            )

    async def _check_or_log(self, deployment_id: str) -> None:
        try:
            await self._check(deployment_id)
        except Exception:  # a person may have written the schedule; the others must still be checked
            log.warning(
                "a schedule could not be compared with Temporal",
                action="schedule.unchecked",
                deployment=deployment_id,
                exc_info=True,
            )

    async def _check(self, deployment_id: str) -> None:
        state = await self._store.load(deployment_id)
        if state is None or state.schedule is None or not state.is_applied:
            return
        handle = self._client.get_schedule_handle(schedule_id(state.organisation, deployment_id))
        try:
            found = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            fault = "it does not exist"
        else:
            fault = await self._find_fault(found, state)
            if not fault:
                return
        log.warning("a schedule is repaired", action="schedule.repaired", deployment=deployment_id, fault=fault)
        await self._apply(state)

    async def _apply(self, state: ScheduleState) -> None:
        newest: ScheduleState | None = state
        while newest is not None:
            try:
                await self._write(newest)
            except (RPCError, TemporalError) as error:
                raise Unavailable(f"Temporal does not accept the schedule: {error}") from error
            await self._store.mark_applied(newest)
            # If the deployment has changed meanwhile, this may have overwritten the newer schedule.
            written, newest = newest, await self._store.load(newest.deployment_id)
            if newest is not None and newest.revision == written.revision:
                return

    async def _find_fault(self, found: ScheduleDescription, state: ScheduleState) -> str:
        action = found.schedule.action
        if not isinstance(action, ScheduleActionStartWorkflow) or len(action.args) != 1:
            return "its workflow was changed"
        if action.task_queue != self._queue or action.workflow != DeploymentWorkflow.__name__:
            return "its workflow was changed"
        known = await self._client.data_converter.decode([*action.args], [ScheduledDeployment])
        if known != [_describe(state)]:
            return "it belongs to an earlier revision"
        if found.schedule.state.limited_actions or found.schedule.state.paused != state.is_paused:
            return "it was paused or resumed"
        return ""

    async def _write(self, state: ScheduleState) -> None:
        """Create, change or delete the schedule in Temporal."""
        identity = schedule_id(state.organisation, state.deployment_id)
        handle = self._client.get_schedule_handle(identity)
        if state.schedule is None:
            await self._delete(handle)
            return
        schedule = self._build(state)
        try:
            await self._client.create_schedule(identity, schedule, rpc_timeout=_RPC_TIMEOUT)
        except ScheduleAlreadyRunningError:
            await handle.update(lambda _: ScheduleUpdate(schedule), rpc_timeout=_RPC_TIMEOUT)

    async def _delete(self, handle: ScheduleHandle) -> None:
        try:
            await handle.delete(rpc_timeout=_RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    def _build(self, state: ScheduleState) -> Schedule:
        described = _describe(state)
        assert state.schedule is not None
        return Schedule(
            action=ScheduleActionStartWorkflow(
                DeploymentWorkflow.run,
                described,
                id=schedule_id(state.organisation, state.deployment_id),
                task_queue=self._queue,
            ),
            spec=ScheduleSpec(calendars=[_to_spec(one) for one in state.schedule.to_utc(described.offsets)]),
            policy=SchedulePolicy(
                overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=timedelta(seconds=state.catch_up_seconds)
            ),
            state=TemporalState(paused=state.is_paused),
        )


class DeploymentActivities(Chore):
    """Starts the runs of schedules, and those that were buffered."""

    def __init__(
        self,
        store: FiringStore,
        schedules: DeploymentSchedules,
        announce: Callable[[AcceptedInputs], Awaitable[None]],
    ) -> None:
        self._store = store
        self._schedules = schedules
        self._announce = announce

    @activity.defn(name=FIRE_DEPLOYMENT)
    async def fire(self, deployment: ScheduledDeployment, scheduled_at: str) -> None:
        schedule, at = CronSchedule(deployment.expression, deployment.timezone), datetime.fromisoformat(scheduled_at)
        if schedule.matches(at):
            await self._fire(deployment.organisation, deployment.deployment_id, at, schedule)

    async def run(self) -> None:
        for organisation, deployment_id, scheduled_at in await self._store.find_buffered():
            await self._fire(organisation, deployment_id, scheduled_at, None)

    async def _fire(
        self, organisation: str, deployment_id: str, scheduled_at: datetime, schedule: CronSchedule | None
    ) -> None:
        firing = await self._store.fire(organisation, deployment_id, scheduled_at, schedule=schedule)
        if not firing.is_current:
            log.info("a schedule in Temporal is outdated", action="schedule.outdated", deployment=deployment_id)
            await self._schedules.repair(organisation, deployment_id)
            return
        for accepted in firing.accepted:
            await self._announce(accepted)
        run = firing.run
        if run is not None:
            log.info(
                "a run of a schedule was recorded",
                action="schedule.fired",
                deployment=deployment_id,
                run=run.id,
                session=run.session_id,
                error=None if run.error is None else run.error.type.value,
            )


def _describe(state: ScheduleState) -> ScheduledDeployment:
    assert state.schedule is not None
    return ScheduledDeployment(
        organisation=state.organisation,
        deployment_id=state.deployment_id,
        revision=state.revision,
        expression=state.schedule.expression,
        timezone=state.schedule.timezone,
        catch_up_seconds=state.catch_up_seconds,
        offsets=[*state.schedule.find_offsets(datetime.now(UTC))],
    )


def _to_spec(calendar: UtcCalendar) -> ScheduleCalendarSpec:
    def to_ranges(numbers: frozenset[int]) -> Sequence[ScheduleRange]:
        return [ScheduleRange(number) for number in sorted(numbers)]

    return ScheduleCalendarSpec(
        minute=to_ranges(calendar.minutes),
        hour=to_ranges(calendar.hours),
        day_of_month=to_ranges(calendar.days),
        month=to_ranges(calendar.months),
        day_of_week=to_ranges(calendar.weekdays),
    )
