"""Opens what the API and the workers have in common: the connections to the services, and the components that notify
other processes of a commit.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client

from footplate.config import Settings
from footplate.engine.change_notifier import ChangeNotifier
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.temporal.deployment_schedules import DeploymentSchedules
from footplate.engine.temporal.session_waker import TemporalWaker
from footplate.engine.temporal.webhook_signals import TemporalWebhookSignals
from footplate.engine.webhooks.endpoint_waker import EndpointWaker
from footplate.store.database import Database, PlanCacheMode
from footplate.store.object_store import Objects
from footplate.store.resources.deployments import DeploymentScheduleStore
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.webhooks import Webhooks
from footplate.store.retention.group_cancellation import GroupCancellation
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.nudges import NudgeListener, NudgeSender
from footplate.wiring.shared_components import check_redis, open_database, open_objects
from footplate.wiring.temporal_client import connect_temporal


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What replaces parts of an API or a worker in tests. None: the part of production. The caller closes its parts."""

    database: Database | None = None
    objects: Objects | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    settings: Settings
    database: Database
    objects: Objects
    temporal: Client
    limits: LimitStore


@asynccontextmanager
async def open_connections(
    settings: Settings, overrides: Overrides, *, patience: float = 5.0, plans: PlanCacheMode = "auto"
) -> AsyncIterator[Connections]:
    """Raises an error if a service does not respond, except for Redis. `patience` and `plans`: of the database."""
    async with AsyncExitStack() as exits:
        if (database := overrides.database) is None:
            database = await exits.enter_async_context(open_database(settings, patience=patience, plans=plans))
        await check_redis(settings)
        yield Connections(
            settings=settings,
            database=database,
            objects=overrides.objects or await open_objects(settings),
            temporal=await connect_temporal(settings),
            limits=LimitStore(database, settings.default_limits),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifiers:
    """Notify workflows, running turns, event streams, feeds and webhook endpoints."""

    waker: TemporalWaker
    nudger: NudgeSender
    live: LivePublisher
    endpoint_waker: EndpointWaker
    child_cancellation: ChildCancellation
    schedules: DeploymentSchedules
    changes: ChangeNotifier


@asynccontextmanager
async def open_notifiers(connections: Connections, nudges: NudgeListener | None = None) -> AsyncIterator[Notifiers]:
    """`nudges`: a worker knows from them which feeds are read."""
    settings, database, temporal = connections.settings, connections.database, connections.temporal
    async with AsyncExitStack() as exits:
        waker = TemporalWaker(temporal, settings)
        nudger = NudgeSender(settings.redis_url)
        exits.push_async_callback(nudger.aclose)
        endpoint_waker = EndpointWaker(
            Webhooks(database), TemporalWebhookSignals(temporal, settings), nudge=nudger.nudge
        )
        await exits.enter_async_context(endpoint_waker.running())
        live = LivePublisher(
            settings.redis_url,
            watched_feeds=None if nudges is None else nudges.watched_feeds,
            on_change=endpoint_waker.notify_change,
        )
        await exits.enter_async_context(live)
        groups = GroupCancellation(database, connections.objects)
        child_cancellation = ChildCancellation(groups, waker, nudger.nudge, live.publish)
        schedules = DeploymentSchedules(temporal, settings, DeploymentScheduleStore(database))
        yield Notifiers(
            waker=waker,
            nudger=nudger,
            live=live,
            endpoint_waker=endpoint_waker,
            child_cancellation=child_cancellation,
            schedules=schedules,
            changes=ChangeNotifier(live, nudger.nudge, waker, child_cancellation, schedules),
        )
