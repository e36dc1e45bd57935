"""The worker: polls Temporal for turns, runs them, and stops in order."""

import asyncio
from datetime import timedelta

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from footplate.config import Settings
from footplate.engine.activities import SweepActivities, TurnActivities
from footplate.engine.workflow import SessionWorkflow, SweepWorkflow

log = structlog.get_logger(__name__)


async def run_worker(
    client: Client, settings: Settings, turns: TurnActivities, sweep: SweepActivities, stop: asyncio.Event
) -> None:
    await _schedule_sweep(client, settings)
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[SessionWorkflow, SweepWorkflow],
        activities=[turns.run_turn, turns.prepare, sweep.sweep],
        # The workflows hold no I/O and are replayed in CI; the sandbox would cost a third of the throughput.
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=settings.max_turns + 1,  # one for a sweep that an older version began
        max_cached_workflows=1000,
        max_concurrent_workflow_task_polls=4,
        max_concurrent_activity_task_polls=4,
        # A cancellation comes with a heartbeat's answer: do not let the SDK hold heartbeats back.
        max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_timeout / 4),
        graceful_shutdown_timeout=timedelta(seconds=settings.drain),
    )
    async with worker:
        log.info("worker ready", action="worker.ready", queue=settings.task_queue)
        await stop.wait()
        log.info("worker stops", action="worker.stopping")


async def _schedule_sweep(client: Client, settings: Settings) -> None:
    sweep_id = f"sweep/{settings.task_queue}"
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(SweepWorkflow.run, id=sweep_id, task_queue=settings.task_queue),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=settings.sweep_interval))]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    try:
        await client.create_schedule(sweep_id, schedule)
    except ScheduleAlreadyRunningError:
        return
