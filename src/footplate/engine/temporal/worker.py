"""The Temporal worker: receives turns from Temporal, runs them, and shuts down gracefully."""

import asyncio
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from footplate.config import Settings
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.deployment_schedules import DeploymentActivities
from footplate.engine.temporal.sweep_schedule import SweepSchedule
from footplate.engine.temporal.workflows import DeploymentWorkflow, SessionWorkflow, SweepWorkflow

log = structlog.get_logger(__name__)


async def run_worker(
    client: Client,
    settings: Settings,
    turns: TurnActivities,
    sweep: SweepActivities,
    stop: asyncio.Event,
    deployments: DeploymentActivities | None = None,
) -> None:
    schedule = SweepSchedule(client, settings)
    await schedule.create_or_repair()
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[SessionWorkflow, SweepWorkflow, DeploymentWorkflow],
        activities=[turns.run_turn, turns.prepare, sweep.sweep, *([deployments.fire] if deployments else [])],
        # The workflows do no I/O and are replayed in CI; the sandbox would cost a third of the throughput.
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=settings.max_turns + 1,  # one for a sweep that an older version started
        max_cached_workflows=1000,
        max_concurrent_workflow_task_polls=4,
        max_concurrent_activity_task_polls=4,
        # A cancellation arrives in the response to a heartbeat, so the SDK must not throttle heartbeats.
        max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_timeout / 4),
        graceful_shutdown_timeout=timedelta(seconds=settings.drain),
    )
    async with worker:
        log.info("worker ready", action="worker.ready", queue=settings.task_queue)
        repairing = asyncio.create_task(schedule.keep_repaired(), name="sweep-schedule")
        try:
            await stop.wait()
        finally:
            repairing.cancel()
        log.info("worker stopping", action="worker.stopping")
