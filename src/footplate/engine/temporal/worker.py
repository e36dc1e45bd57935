"""The Temporal worker: receives turns from Temporal, runs them, and shuts down gracefully."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from footplate.config import Settings
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.deployment_schedules import DeploymentActivities
from footplate.engine.temporal.sweep_schedule import SweepSchedule
from footplate.engine.temporal.turn_slots import TurnSlots, create_tuner
from footplate.engine.temporal.webhook_workflow import WebhookActivities, WebhookWorkflow, webhook_queue
from footplate.engine.temporal.workflows import DeploymentWorkflow, SessionWorkflow, SweepWorkflow, backend_queue

log = structlog.get_logger(__name__)

_MAX_ENDPOINTS: Final = 20
"""The number of webhook endpoints that a worker serves at the same time."""
_WEBHOOK_DRAIN: Final = timedelta(seconds=1)


async def run_worker(
    client: Client,
    settings: Settings,
    turns: TurnActivities,
    sweep: SweepActivities,
    stop: asyncio.Event,
    *,
    webhooks: WebhookActivities,
    deployments: DeploymentActivities | None = None,
) -> None:
    schedule = SweepSchedule(client, settings)
    await schedule.create_or_repair()
    # With several queues, all share the slots for turns.
    slots = TurnSlots(settings.max_turns) if settings.backends else None
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[SessionWorkflow, SweepWorkflow, WebhookWorkflow, DeploymentWorkflow],
        activities=[turns.run_turn, turns.prepare, sweep.sweep, *([deployments.fire] if deployments else [])],
        # The workflows do no I/O and are replayed in CI; the sandbox would cost a third of the throughput.
        workflow_runner=UnsandboxedWorkflowRunner(),
        # One for a sweep that an older version started.
        max_concurrent_activities=settings.max_turns + 1 if slots is None else None,
        tuner=None if slots is None else create_tuner(slots),
        max_cached_workflows=1000,
        max_concurrent_workflow_task_polls=4,
        max_concurrent_activity_task_polls=4,
        # A cancellation arrives in the response to a heartbeat, so the SDK must not throttle heartbeats.
        max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_timeout / 4),
        graceful_shutdown_timeout=timedelta(seconds=settings.drain),
    )
    turn_workers = [worker, *([] if slots is None else create_backend_workers(client, settings, turns, slots))]
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(create_webhook_worker(client, settings, webhooks))
        for turn_worker in turn_workers:
            await exits.enter_async_context(turn_worker)
        log.info("worker ready", action="worker.ready", queue=settings.task_queue, backends=settings.backend_names)
        repairing = asyncio.create_task(schedule.keep_repaired(), name="sweep-schedule")
        try:
            await stop.wait()
        finally:
            repairing.cancel()
        log.info("worker stopping", action="worker.stopping")
        await asyncio.gather(*(turn_worker.shutdown() for turn_worker in turn_workers))


def create_backend_workers(client: Client, settings: Settings, turns: TurnActivities, slots: TurnSlots) -> list[Worker]:
    """One for each backend that the operator lists: they receive the turns that other workers do not offer the backend
    for.
    """
    return [
        Worker(
            client,
            task_queue=backend_queue(settings.task_queue, backend),
            activities=[turns.run_turn],
            tuner=create_tuner(slots),
            max_concurrent_activity_task_polls=1,
            max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_timeout / 4),
            graceful_shutdown_timeout=timedelta(seconds=settings.drain),
        )
        for backend in settings.backend_names
    ]


def create_webhook_worker(client: Client, settings: Settings, webhooks: WebhookActivities) -> Worker:
    """The activities of webhooks have their own queue and slots, so that an endpoint that hangs delays no turn."""
    return Worker(
        client,
        task_queue=webhook_queue(settings.task_queue),
        activities=[webhooks.deliver],
        max_concurrent_activities=_MAX_ENDPOINTS,
        max_concurrent_activity_task_polls=1,
        max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_timeout / 4),
        graceful_shutdown_timeout=_WEBHOOK_DRAIN,
    )
