"""Builds the activities that a worker runs beside turns: the sweep with its chores, the sessions of schedules, and
webhooks with notifications.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from footplate.engine.temporal.activities import SweepActivities
from footplate.engine.temporal.deployment_schedules import DeploymentActivities
from footplate.engine.temporal.webhook_workflow import WebhookActivities
from footplate.engine.webhooks.delivery_runner import WebhookRunner
from footplate.engine.webhooks.http_sender import WebhookSender
from footplate.engine.webhooks.push_runner import EndpointRunners, PushRunner
from footplate.engine.webhooks.push_sender import PushSender
from footplate.environments.session_directories import WORKSPACES, remove_session_directories
from footplate.store.api_reads import ApiReads
from footplate.store.deployment_firing import DeploymentFirings
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.approval_edits_and_expiry import ApprovalExpiry
from footplate.store.log.feed import Feed, FeedExpiry
from footplate.store.resources.audit_trail import AuditSealing
from footplate.store.resources.deployments import RunExpiry
from footplate.store.resources.files import FileCleanup
from footplate.store.resources.notifications import PushKeys, PushSubscriptions
from footplate.store.resources.session_search import SearchIndexing
from footplate.store.resources.webhooks import WebhookExpiry, Webhooks
from footplate.store.retention.archiving import SessionArchiving
from footplate.store.retention.deletion_cleanup import DeletionCleanup
from footplate.store.retention.expiry import IdleSessionEnding, SessionExpiry
from footplate.store.unit_of_work import UnitOfWorkFactory
from footplate.stream.session_cleanup import SessionCleaner
from footplate.wiring.connections import Connections, Notifiers
from footplate.wiring.shared_components import get_allowed_roots


@asynccontextmanager
async def open_sweep(
    connections: Connections, notifiers: Notifiers, leases: WorkerLeases, deployments: DeploymentActivities
) -> AsyncIterator[SweepActivities]:
    settings, database, objects = connections.settings, connections.database, connections.objects
    notify_ended = notifiers.child_cancellation.notify
    forgetter = SessionCleaner(settings.redis_url)
    sweep = SweepActivities(
        leases,
        notifiers.waker,
        (
            DeletionCleanup(database, objects, _SessionCleanup(forgetter, settings.data_dir / WORKSPACES)),
            SessionArchiving(database, objects, settings.retention),
            IdleSessionEnding(database, settings.retention_end, notify_ended),
            SessionExpiry(database, settings.retention_delete, notify_ended),
            FileCleanup(database, objects),
        ),
        urgent=(
            notifiers.schedules,
            deployments,
            AuditSealing(database),
            ApprovalExpiry(database, objects),
            FeedExpiry(database, settings.retention_feed),
            SearchIndexing(database, objects),
            notifiers.child_cancellation,
            notifiers.endpoint_waker,
            WebhookExpiry(database, settings.retention_feed),
            RunExpiry(database, settings.retention_runs),
        ),
    )
    try:
        yield sweep
    finally:
        await sweep.aclose()
        await forgetter.aclose()


def create_deployment_activities(connections: Connections, notifiers: Notifiers) -> DeploymentActivities:
    units = UnitOfWorkFactory(connections.database, connections.objects, connections.limits)
    check_context = get_allowed_roots(connections.settings).check_context
    firings = DeploymentFirings(connections.database, units, check_context)
    return DeploymentActivities(firings, notifiers.schedules, notifiers.changes.notify_accepted)


@asynccontextmanager
async def open_webhook_activities(connections: Connections) -> AsyncIterator[WebhookActivities]:
    settings, database = connections.settings, connections.database
    store, reads = Webhooks(database), ApiReads(database, connections.objects)
    first_retry_wait = timedelta(seconds=settings.webhook_retry_wait)
    sender = WebhookSender(settings.webhook_access, max_seconds=settings.webhook_seconds)
    webhooks = WebhookRunner(
        store,
        Feed(database, reads.positions),
        sender,
        first_retry_wait=first_retry_wait,
        session_link=settings.session_link,
    )
    push = PushRunner(
        PushSubscriptions(database),
        store,
        reads,
        PushSender(sender, PushKeys(database, settings.push_key), contact=settings.push_sender_contact),
        first_retry_wait=first_retry_wait,
    )
    try:
        yield WebhookActivities(EndpointRunners(webhooks, push), heartbeat_timeout=settings.heartbeat_timeout)
    finally:
        await sender.aclose()


class _SessionCleanup:
    """Removes the traces of a deleted session: its data in Redis, and its directory if it is on this machine."""

    def __init__(self, forgetter: SessionCleaner, workspaces: Path) -> None:
        self._forgetter = forgetter
        self._workspaces = workspaces

    async def __call__(self, organisation: str, session_id: str) -> None:
        await self._forgetter.delete_session_data(organisation, session_id)
        await remove_session_directories(self._workspaces, organisation, session_id)
