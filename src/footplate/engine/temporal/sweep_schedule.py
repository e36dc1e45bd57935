"""Creates and repairs the Temporal schedule of the sweep.

The sweep is a periodic job that wakes sessions whose wake signal or worker was lost, and starts maintenance tasks, for
example the sealing of audit entries.

Anyone with access to Temporal can pause, change or delete a schedule, and a pause survives restarts. Each worker
therefore checks the schedule every few seconds.
"""

import asyncio
from datetime import timedelta
from typing import Final

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
)
from temporalio.service import RPCError, RPCStatusCode

from footplate.config import Settings
from footplate.engine.temporal.workflows import SweepWorkflow

log = structlog.get_logger(__name__)

_MAX_CHECK_INTERVAL: Final = 30.0


class SweepSchedule:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._id = f"sweep/{settings.task_queue}"
        self._queue = settings.task_queue
        self._interval = timedelta(seconds=settings.sweep_interval)
        self._check_interval = min(settings.sweep_interval, _MAX_CHECK_INTERVAL)

    async def create_or_repair(self) -> None:
        try:
            await self._client.create_schedule(self._id, self._build_schedule())
        except ScheduleAlreadyRunningError:
            await self._repair(self._client.get_schedule_handle(self._id))

    async def keep_repaired(self) -> None:
        """Check and repair the schedule until cancelled."""
        while True:
            await asyncio.sleep(self._check_interval)
            try:
                await self._repair(self._client.get_schedule_handle(self._id))
            except RPCError as error:
                if error.status == RPCStatusCode.NOT_FOUND:
                    await self._create_again()
                else:
                    log.info("the sweep schedule cannot be checked", action="sweep.unchecked", reason=str(error))
            except Exception:  # an attacker may have written the schedule; the next check must still run
                log.warning("the sweep schedule cannot be read", action="sweep.unchecked", exc_info=True)

    async def _create_again(self) -> None:
        log.warning("the sweep schedule was deleted; creating it again", action="sweep.repaired", fault="deleted")
        try:
            await self.create_or_repair()
        except RPCError as error:
            log.warning("the sweep schedule could not be created", action="sweep.unrepaired", reason=str(error))

    async def _repair(self, handle: ScheduleHandle) -> None:
        fault = self._find_fault((await handle.describe()).schedule)
        if not fault:
            return
        log.warning("the sweep schedule was changed; repairing it", action="sweep.repaired", fault=fault)
        await handle.update(lambda _: ScheduleUpdate(self._build_schedule()))
        # A run that the changed schedule started may never end, and would block the next ones.
        await handle.trigger(overlap=ScheduleOverlapPolicy.TERMINATE_OTHER)

    def _find_fault(self, found: Schedule) -> str:
        action, spec, state = found.action, found.spec, found.state
        if state.paused:
            return "paused"
        if state.limited_actions:
            return "limited"
        if not isinstance(action, ScheduleActionStartWorkflow) or (action.workflow, action.id, action.task_queue) != (
            SweepWorkflow.__name__,
            self._id,
            self._queue,
        ):
            return "its workflow was changed"
        if any((action.args, action.execution_timeout, action.run_timeout)):
            return "its input or time limit was changed"
        limits = (spec.calendars, spec.cron_expressions, spec.skip, spec.start_at, spec.end_at, spec.jitter)
        if [each.every for each in spec.intervals] != [self._interval] or any(limits):
            return "its interval was changed"
        return "" if found.policy.overlap == ScheduleOverlapPolicy.SKIP else "its overlap policy was changed"

    def _build_schedule(self) -> Schedule:
        return Schedule(
            action=ScheduleActionStartWorkflow(SweepWorkflow.run, id=self._id, task_queue=self._queue),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=self._interval)]),
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
        )
