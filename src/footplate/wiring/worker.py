"""Builds a worker from all packages, and runs the worker process.

Tests run workers in their own process: `WorkerOverrides` names what they may replace. Everything else is what
production uses.
"""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from footplate import __version__
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.ports.deployment_health import WorkerDescription
from footplate.domain.ports.engine import Environments
from footplate.domain.ports.harness import Harness
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.deployment_schedules import DeploymentActivities
from footplate.engine.temporal.webhook_workflow import WebhookActivities
from footplate.engine.temporal.worker import run_worker
from footplate.engine.webhooks.endpoint_waker import ENDPOINTS_CHANGED
from footplate.environments.reaper.periodic_reaper import PeriodicReaper
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper
from footplate.harness import registry
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.fenced_turn_writes import TURN_STATEMENTS
from footplate.store.migrations.schema_revisions import known_revision
from footplate.store.session_existence import SessionRegistry
from footplate.stream.nudges import NudgeListener
from footplate.trees.session_trees import SessionTrees
from footplate.wiring.activities import create_deployment_activities, open_sweep, open_webhook_activities
from footplate.wiring.connections import Connections, Notifiers, Overrides, open_connections, open_notifiers
from footplate.wiring.environment_backend import create_environment_backend
from footplate.wiring.garbage_collection import collecting_daily
from footplate.wiring.session_files import open_trees
from footplate.wiring.shared_components import create_data_directory, freeze_loaded_objects
from footplate.wiring.telemetry import running_telemetry
from footplate.wiring.turns import open_turn_runner


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOverrides(Overrides):
    environments: Environments | None = None
    """With these, the worker has no reaper: the reaper removes what the environments of production leave."""
    trees: SessionTrees | None = None
    find_harness: Callable[[str], Harness] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    id: str
    connections: Connections
    notifiers: Notifiers
    turns: TurnActivities
    sweep: SweepActivities
    webhooks: WebhookActivities
    deployments: DeploymentActivities
    stopping: asyncio.Event

    async def run(self) -> None:
        """Receive work from Temporal until `stopping` is set, and the turns have ended or were handed over."""
        await run_worker(
            self.connections.temporal,
            self.connections.settings,
            self.turns,
            self.sweep,
            self.stopping,
            webhooks=self.webhooks,
            deployments=self.deployments,
        )


async def run(settings: Settings) -> None:
    _raise_open_file_limit()
    create_data_directory(settings)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with running_telemetry(settings, "worker"), build_worker(settings, stopping=stopping) as worker:
        freeze_loaded_objects()
        await worker.run()


@asynccontextmanager
async def build_worker(
    settings: Settings, overrides: WorkerOverrides | None = None, *, stopping: asyncio.Event | None = None
) -> AsyncIterator[Worker]:
    """Connects to the services, takes a lease, and starts what runs beside turns. `Worker.run` receives the turns."""
    overrides, stopping = overrides or WorkerOverrides(), stopping or asyncio.Event()
    worker_id = ids.new_id(ids.WORKER)
    structlog.contextvars.bind_contextvars(worker=worker_id)
    async with AsyncExitStack() as exits:
        connections = await exits.enter_async_context(
            open_connections(settings, overrides, patience=30, plans="force_generic_plan")
        )
        database = connections.database
        nudges = await exits.enter_async_context(NudgeListener(settings.redis_url))
        notifiers = await exits.enter_async_context(open_notifiers(connections, nudges))
        exits.enter_context(nudges.watch(ENDPOINTS_CHANGED, notifiers.endpoint_waker.refresh_soon))
        leases = WorkerLeases(database, _describe_worker(settings))
        if (trees := overrides.trees) is None:
            trees = await exits.enter_async_context(open_trees(connections))
        if (environments := overrides.environments) is None:
            environments = await exits.enter_async_context(
                _open_environments(connections, trees, leases, worker=worker_id)
            )
        await exits.enter_async_context(collecting_daily(settings, database, connections.objects))
        runner = await exits.enter_async_context(
            open_turn_runner(
                connections,
                notifiers,
                worker=worker_id,
                leases=leases,
                nudges=nudges,
                trees=trees,
                environments=environments,
                find_harness=overrides.find_harness,
                stopping=stopping,
            )
        )
        deployments = create_deployment_activities(connections, notifiers)
        sweep = await exits.enter_async_context(open_sweep(connections, notifiers, leases, deployments))
        webhooks = await exits.enter_async_context(open_webhook_activities(connections))
        await database.plan_statements(TURN_STATEMENTS)
        yield Worker(
            id=worker_id,
            connections=connections,
            notifiers=notifiers,
            turns=TurnActivities(
                runner,
                heartbeat_timeout=settings.heartbeat_timeout,
                drain=settings.drain,
                max_turns=settings.max_turns if settings.backends else None,
            ),
            sweep=sweep,
            webhooks=webhooks,
            deployments=deployments,
            stopping=stopping,
        )


@asynccontextmanager
async def _open_environments(
    connections: Connections, trees: SessionTrees, leases: WorkerLeases, *, worker: str
) -> AsyncIterator[Environments]:
    """Runs the reaper meanwhile, which removes what ended turns and sessions leave."""
    settings = connections.settings
    backend = await create_environment_backend(
        settings, worker=worker, is_lease_expired=leases.has_expired, trees=trees
    )
    workspaces = WorkspaceReaper(
        settings.data_dir,
        SessionRegistry(connections.database),
        mark_for_rebuild=trees.mark_for_rebuild,
        released_after=settings.retention_trees,
    )
    reaper = PeriodicReaper(settings.data_dir, backend.cgroup_directories, workspaces, backend.reaper_sweeps)
    async with reaper.run_in_background():
        yield backend.environments


def _describe_worker(settings: Settings) -> WorkerDescription:
    return WorkerDescription(
        version=__version__,
        backends=settings.backend_names,
        harnesses=sorted(registry.installed_harnesses()),
        max_turns=settings.max_turns,
        schema_revision=known_revision(),
    )


def _raise_open_file_limit() -> None:
    """Raise the limit on open files to the maximum. Turns need pipes and sockets; a sandbox never gets more than half
    of the worker's limit.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
