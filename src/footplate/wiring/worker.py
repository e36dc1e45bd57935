"""Builds the components of a worker process, and runs the process."""

import asyncio
import resource
import signal
import socket
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from temporalio.client import Client

from footplate import __version__
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.files.attachments import Attachment, AttachmentFailed
from footplate.domain.files.session_outputs import OutputLimits
from footplate.domain.ports.deployment_health import WorkerDescription
from footplate.domain.ports.engine import LiveTurn
from footplate.domain.ports.harness import HarnessServices, McpAccess, SearchProvider, WebAccess
from footplate.domain.sessions.groups import ChildLimits
from footplate.engine.change_notifier import ChangeNotifier
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.deferred_turn_starter import DeferredTurnStarter
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.deployment_schedules import DeploymentActivities, DeploymentSchedules
from footplate.engine.temporal.session_waker import TemporalWaker
from footplate.engine.temporal.webhook_signals import TemporalWebhookSignals
from footplate.engine.temporal.webhook_workflow import WebhookActivities
from footplate.engine.temporal.worker import run_worker
from footplate.engine.turn.runner import TurnLimits, TurnRunner, TurnServices
from footplate.engine.warm.prewarming import Prewarmer
from footplate.engine.warm.warm_pool import WarmPool
from footplate.engine.webhooks.delivery_runner import WebhookRunner
from footplate.engine.webhooks.endpoint_waker import ENDPOINTS_CHANGED, EndpointWaker
from footplate.engine.webhooks.http_sender import WebhookSender
from footplate.engine.webhooks.push_runner import EndpointRunners, PushRunner
from footplate.engine.webhooks.push_sender import PushSender
from footplate.engine.worker_lease import WorkerLease
from footplate.environments.reaper.periodic_reaper import PeriodicReaper
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper
from footplate.environments.session_directories import WORKSPACES, remove_session_directories
from footplate.gate.turn_gate import TurnGateFactory
from footplate.harness import registry
from footplate.harness.attachment_download import AttachmentFetcher
from footplate.proxy.model_proxy import ModelProxy
from footplate.store.api_reads import ApiReads
from footplate.store.database import Database
from footplate.store.deployment_firing import DeploymentFirings
from footplate.store.leases.branch_and_directory_leases import WriteLeases
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.approval_edits_and_expiry import ApprovalExpiry
from footplate.store.log.deferred_turns import DeferredTurns
from footplate.store.log.feed import Feed, FeedExpiry
from footplate.store.log.fenced_turn_writes import TURN_STATEMENTS, Turns
from footplate.store.log.files.file_snapshots import SnapshotHistory
from footplate.store.log.session_groups.child_sessions import ChildSessionStore
from footplate.store.log.turn_claims import Claims
from footplate.store.migrations.schema_revisions import known_revision
from footplate.store.object_store import Objects
from footplate.store.resources.audit_trail import AuditSealing, HookRunRecorder
from footplate.store.resources.deployments import DeploymentScheduleStore, RunExpiry
from footplate.store.resources.files import FileCleanup, FileContents
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.notifications import PushKeys, PushSubscriptions
from footplate.store.resources.policies import SessionRuleLoader
from footplate.store.resources.project_caches import ProjectCaches
from footplate.store.resources.session_outputs import OutputRoom
from footplate.store.resources.session_search import SearchIndexing
from footplate.store.resources.webhooks import WebhookExpiry, Webhooks
from footplate.store.retention.archiving import SessionArchiving
from footplate.store.retention.deletion_cleanup import DeletionCleanup
from footplate.store.retention.expiry import IdleSessionEnding, SessionExpiry
from footplate.store.retention.group_cancellation import GroupCancellation
from footplate.store.session_existence import SessionRegistry
from footplate.store.unit_of_work import UnitOfWorkFactory
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.nudges import NudgeListener, NudgeSender
from footplate.stream.session_cleanup import SessionCleaner
from footplate.stream.terminal_streams import RedisTerminalChannels
from footplate.stream.turn_publisher import TurnPublisher
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.outputs.collection import HostOutputDirectories
from footplate.trees.projects.directory_cache import CacheLimits, DirectoryCache
from footplate.trees.projects.included_files import IncludedFiles
from footplate.trees.projects.tree_setup import CachedTreeSetup
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.pack_consolidation import PackConsolidator
from footplate.trees.snapshots.upload import SnapshotUploader
from footplate.wiring.environment_backend import create_environment_backend
from footplate.wiring.garbage_collection import collecting_daily
from footplate.wiring.model_connections import load_endpoints
from footplate.wiring.shared_components import (
    check_redis,
    create_data_directory,
    create_delivery_service,
    create_mirrors,
    freeze_loaded_objects,
    get_allowed_roots,
    get_hook_access,
    open_database,
    open_objects,
)
from footplate.wiring.telemetry import running_telemetry
from footplate.wiring.temporal_client import connect_temporal

_MAX_DELIVERY_READS: Final = 4
"""Concurrent downloads of sessions' files, for steps that deliver."""


async def run(settings: Settings) -> None:
    _raise_open_file_limit()
    create_data_directory(settings)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(running_telemetry(settings, "worker"))
        database = await exits.enter_async_context(open_database(settings, patience=30, plans="force_generic_plan"))
        await check_redis(settings)
        objects = await open_objects(settings)
        worker = ids.new_id(ids.WORKER)
        leases = WorkerLeases(
            database,
            description=WorkerDescription(
                version=__version__,
                backends=settings.backend_names,
                harnesses=sorted(registry.installed_harnesses()),
                max_turns=settings.max_turns,
                schema_revision=known_revision(),
            ),
        )
        trees = _create_trees(settings, database, objects, exits)
        backend = await create_environment_backend(
            settings, worker=worker, is_lease_expired=leases.has_expired, trees=trees
        )
        workspaces = WorkspaceReaper(
            settings.data_dir,
            SessionRegistry(database),
            mark_for_rebuild=trees.mark_for_rebuild,
            released_after=settings.retention_trees,
        )
        patrol = PeriodicReaper(settings.data_dir, backend.cgroup_directories, workspaces, backend.reaper_sweeps)
        lease = WorkerLease(leases, worker_id=worker, host=socket.gethostname(), lease_seconds=settings.lease)
        structlog.contextvars.bind_contextvars(worker=lease.worker_id)
        limits = LimitStore(database, settings.default_limits)
        turns = Turns(database, objects, limits)
        client = await connect_temporal(settings)
        models = await exits.enter_async_context(ModelProxy(*load_endpoints(settings)))
        services = HarnessServices(
            models.endpoints,
            _web_access(settings),
            settings.starts,
            _mcp_access(settings),
            settings.subagent_hold,
            models.in_process,
        )
        harnesses = registry.HarnessRegistry(services)
        harnesses.get(settings.default_harness)
        waker = TemporalWaker(client, settings)
        claims = Claims(
            database,
            objects,
            default_harness=settings.default_harness,
            limits=limits,
            backends=settings.backend_names,
        )
        deferred = DeferredTurnStarter(DeferredTurns(database, limits), waker)
        conversations = ConversationCache(
            turns, max_bytes=settings.kept_megabytes << 20, max_idle_seconds=settings.kept_seconds
        )

        nudges = await exits.enter_async_context(NudgeListener(settings.redis_url))

        def create_pool(max_processes: int, seconds: float) -> WarmPool:
            return WarmPool(
                max_processes=max_processes, max_idle_seconds=seconds, deadline=lambda: lease.deadline, nudges=nudges
            )

        warm_pool = create_pool(settings.kept_sessions, settings.kept_seconds)
        prewarmer = Prewarmer(
            create_pool(settings.slots, settings.slot_seconds),
            claims=claims,
            conversations=conversations,
            environments=backend.environments,
            models=models,
            harness=harnesses.get,
            deadline=lambda: lease.deadline,
        )
        webhook_waker = await _start_webhook_waker(settings, database, client, nudges, exits)
        live = await exits.enter_async_context(
            LivePublisher(settings.redis_url, watched_feeds=nudges.watched_feeds, on_change=webhook_waker.notify_change)
        )
        nudger = _open_nudge_sender(settings, exits)
        child_cancellation = ChildCancellation(GroupCancellation(database, objects), waker, nudger.nudge, live.publish)
        runner = TurnRunner(
            TurnServices(
                claims=claims,
                turns=turns,
                live=_LiveTurns(live),
                nudges=nudges,
                waker=waker,
                environments=backend.environments,
                gate_factory=TurnGateFactory(
                    SessionRuleLoader(database, settings.resolved_projects_root),
                    HookRunRecorder(database),
                    get_hook_access(settings),
                ),
                trees=trees,
                tree_setup=_create_tree_setup(settings, database, objects),
                setup_seconds=settings.setup_seconds,
                output_directories=_create_output_directories(settings, database, objects, limits),
                write_leases=WriteLeases(database) if settings.allowed_directory_roots else None,
                attachment_sources=_AttachmentSources(
                    FileContents(database, objects), AttachmentFetcher(services.web, max_bytes=settings.file_bytes)
                ),
                snapshot_each_call=settings.snapshots == "calls",
                delivery=create_delivery_service(
                    settings, database, DiffReader(settings.data_dir, objects, max_concurrent=_MAX_DELIVERY_READS)
                ),
                terminal_channels=_open_terminal_channels(settings, exits),
                child_cancellation=child_cancellation,
                children=ChildSessionStore(
                    database,
                    objects,
                    limits=limits,
                    child_limits=ChildLimits(max_depth=settings.child_depth, max_sessions=settings.child_sessions),
                ),
                models=models,
                find_harness=harnesses.get,
                lease=lease,
                conversations=conversations,
                warm_pool=warm_pool,
                prewarmer=prewarmer,
                limits=TurnLimits(
                    lease_seconds=settings.lease,
                    max_failures=settings.max_failures,
                    max_attempts=settings.max_attempts,
                    retry_wait=settings.retry_wait,
                    max_retry_wait=settings.retry_wait_most,
                ),
                stopping=stop,
                on_turn_slot_free=deferred.check_soon,
            )
        )
        await exits.enter_async_context(patrol.run_in_background())
        await exits.enter_async_context(collecting_daily(settings, database, objects))
        for running in (lease.running(), warm_pool.running(), prewarmer.running(), deferred.running()):
            await exits.enter_async_context(running)
        forgetter = SessionCleaner(settings.redis_url)
        exits.push_async_callback(forgetter.aclose)
        schedules = DeploymentSchedules(client, settings, DeploymentScheduleStore(database))
        deployments = DeploymentActivities(
            DeploymentFirings(
                database, UnitOfWorkFactory(database, objects, limits), get_allowed_roots(settings).check_context
            ),
            schedules,
            ChangeNotifier(live, nudger.nudge, waker, child_cancellation, schedules).notify_accepted,
        )
        urgent = (
            schedules,
            deployments,
            AuditSealing(database),
            ApprovalExpiry(database, objects),
            FeedExpiry(database, settings.retention_feed),
            SearchIndexing(database, objects),
            child_cancellation,
            webhook_waker,
            WebhookExpiry(database, settings.retention_feed),
            RunExpiry(database, settings.retention_runs),
        )
        sweep = SweepActivities(
            leases,
            waker,
            (
                DeletionCleanup(database, objects, _SessionCleanup(forgetter, settings.data_dir / WORKSPACES)),
                SessionArchiving(database, objects, settings.retention),
                IdleSessionEnding(database, settings.retention_end, child_cancellation.notify),
                SessionExpiry(database, settings.retention_delete, child_cancellation.notify),
                FileCleanup(database, objects),
            ),
            urgent=urgent,
        )
        exits.push_async_callback(sweep.aclose)
        await database.plan_statements(TURN_STATEMENTS)
        freeze_loaded_objects()
        await run_worker(
            client,
            settings,
            TurnActivities(
                runner,
                heartbeat_timeout=settings.heartbeat_timeout,
                drain=settings.drain,
                max_turns=settings.max_turns if settings.backends else None,
            ),
            sweep,
            stop,
            webhooks=_create_webhook_activities(settings, database, objects, exits),
            deployments=deployments,
        )


def _create_trees(settings: Settings, database: Database, objects: Objects, exits: AsyncExitStack) -> SessionTrees:
    uploader = SnapshotUploader(objects)
    consolidator = PackConsolidator(objects, uploader, SnapshotHistory(database))
    exits.push_async_callback(consolidator.aclose)
    return SessionTrees(
        settings.data_dir,
        create_mirrors(settings),
        uploader,
        consolidator,
        seconds=settings.git_seconds,
        max_home_bytes=settings.home_bytes,
        included_files=IncludedFiles(max_bytes=settings.include_bytes),
    )


def _create_tree_setup(settings: Settings, database: Database, objects: Objects) -> CachedTreeSetup:
    limits = CacheLimits(
        entry_bytes=settings.cache_bytes,
        project_bytes=settings.cache_project_bytes,
        host_bytes=settings.cache_host_bytes,
        unused_seconds=settings.retention_caches.total_seconds(),
    )
    cache = DirectoryCache(settings.data_dir, objects, ProjectCaches(database), limits)
    return CachedTreeSetup(settings.data_dir, cache, seconds=settings.cache_seconds)


def _create_output_directories(
    settings: Settings, database: Database, objects: Objects, limits: LimitStore
) -> HostOutputDirectories:
    output_limits = OutputLimits(
        max_files=settings.output_files, max_bytes=settings.output_bytes, max_file_bytes=settings.file_bytes
    )
    room = OutputRoom(database, limits)
    return HostOutputDirectories(settings.data_dir, FileContents(database, objects), output_limits, room.find_room)


async def _start_webhook_waker(
    settings: Settings, database: Database, client: Client, nudges: NudgeListener, exits: AsyncExitStack
) -> EndpointWaker:
    waker = EndpointWaker(Webhooks(database), TemporalWebhookSignals(client, settings))
    await exits.enter_async_context(waker.running())
    exits.enter_context(nudges.watch(ENDPOINTS_CHANGED, waker.refresh_soon))
    return waker


def _create_webhook_activities(
    settings: Settings, database: Database, objects: Objects, exits: AsyncExitStack
) -> WebhookActivities:
    sender = WebhookSender(settings.webhook_access, max_seconds=settings.webhook_seconds)
    exits.push_async_callback(sender.aclose)
    runner = WebhookRunner(
        Webhooks(database),
        Feed(database, ApiReads(database, objects).positions),
        sender,
        first_retry_wait=timedelta(seconds=settings.webhook_retry_wait),
        session_link=settings.session_link,
    )
    push = PushRunner(
        PushSubscriptions(database),
        Webhooks(database),
        ApiReads(database, objects),
        PushSender(sender, PushKeys(database, settings.push_key), contact=settings.push_sender_contact),
        first_retry_wait=timedelta(seconds=settings.webhook_retry_wait),
    )
    return WebhookActivities(EndpointRunners(runner, push), heartbeat_timeout=settings.heartbeat_timeout)


def _open_nudge_sender(settings: Settings, exits: AsyncExitStack) -> NudgeSender:
    nudger = NudgeSender(settings.redis_url)
    exits.push_async_callback(nudger.aclose)
    return nudger


def _open_terminal_channels(settings: Settings, exits: AsyncExitStack) -> RedisTerminalChannels:
    channels = RedisTerminalChannels(settings.redis_url)
    exits.push_async_callback(channels.aclose)
    return channels


def _raise_open_file_limit() -> None:
    """Raise the limit on open files to the maximum. Turns need pipes and sockets; a sandbox never gets more than half
    of the worker's limit.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _web_access(settings: Settings) -> WebAccess:
    key, provider = settings.search_api_key, settings.search_provider
    search = (
        SearchProvider(provider, settings.search_address, key.get_secret_value() if key else None) if provider else None
    )
    return WebAccess(
        allow=settings.web_allowed,
        max_bytes=settings.web_fetch_bytes,
        max_seconds=settings.web_fetch_seconds,
        search=search,
    )


def _mcp_access(settings: Settings) -> McpAccess:
    return McpAccess(allow=settings.mcp_allowed, call_seconds=settings.mcp_call_seconds)


class _AttachmentSources:
    """Loads attachments: uploaded files of the turn's organisation, and URLs."""

    def __init__(self, files: FileContents, fetcher: AttachmentFetcher) -> None:
        self._files = files
        self.fetch_url = fetcher.fetch
        self.check_url = fetcher.check

    async def file_size(self, organisation: str, file_id: str) -> int:
        try:
            return (await self._files.find(organisation, file_id)).size_bytes
        except NotFound as error:
            raise _missing_file(file_id) from error

    async def load_file(self, organisation: str, file_id: str) -> Attachment:
        try:
            file, data = await self._files.read(organisation, file_id)
        except NotFound as error:
            raise _missing_file(file_id) from error
        return Attachment(data, file.mime_type, file.filename, file.id)


def _missing_file(file_id: str) -> AttachmentFailed:
    return AttachmentFailed(
        f"The file {file_id!r} in the input no longer exists.",
        help_text="It was deleted or has expired. Upload it again, and send the message with the new ID.",
    )


class _LiveTurns:
    def __init__(self, live: LivePublisher) -> None:
        self._live = live

    def open_turn(self, organisation: str, session_id: str) -> LiveTurn:
        return TurnPublisher(self._live, organisation, session_id)


class _SessionCleanup:
    """Removes the traces of a deleted session: its data in Redis, and its directory if it is on this machine."""

    def __init__(self, forgetter: SessionCleaner, workspaces: Path) -> None:
        self._forgetter = forgetter
        self._workspaces = workspaces

    async def __call__(self, organisation: str, session_id: str) -> None:
        await self._forgetter.delete_session_data(organisation, session_id)
        await remove_session_directories(self._workspaces, organisation, session_id)
