"""Builds the components of an API process, and runs the process."""

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import FrameType
from typing import Final

import structlog
import uvicorn

from footplate import __version__
from footplate.api.app import create_app
from footplate.api.requests.organisation_limit_guard import OrganisationLimitGuard, export_limits
from footplate.api.server.http_protocol import LimitedConfig
from footplate.api.server.service_health import ApiHealth
from footplate.api.service_container import ApiServices
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.errors import Conflict, FootplateError
from footplate.domain.network.host_and_origin_check import RequestGuard
from footplate.engine.change_notifier import ChangeNotifier
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.temporal.deployment_schedules import DeploymentSchedules
from footplate.engine.temporal.queue_reports import QueueReports
from footplate.engine.temporal.session_waker import TemporalWaker
from footplate.engine.temporal.webhook_signals import TemporalWebhookSignals
from footplate.engine.webhooks.endpoint_waker import EndpointWaker
from footplate.harness import registry
from footplate.harness.tool_calls import server_toolsets
from footplate.store.api_reads import ApiReads
from footplate.store.database import Database
from footplate.store.leases.api_process_registry import ApiProcessRegistry
from footplate.store.log.feed import Feed
from footplate.store.log.files.diff_snapshots import DiffSnapshots
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.deployments import DeploymentScheduleStore
from footplate.store.resources.files import FileContents
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.notifications import PushKeys
from footplate.store.resources.session_states import count_activities
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.device_authorizations import DeviceAuthorizationStore
from footplate.store.resources.sign_in.failures import SignInFailures
from footplate.store.resources.terminal_recordings import StoredTerminalRecordings
from footplate.store.resources.usage_report import UsageReader
from footplate.store.resources.webhooks import Webhooks
from footplate.store.retention.group_cancellation import GroupCancellation
from footplate.store.unit_of_work import UnitOfWorkFactory
from footplate.stream import redis_connections
from footplate.stream.feed.feed_hub import FeedHub
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.nudges import NudgeSender
from footplate.stream.organisation_counters import RequestRates, StreamCounts
from footplate.stream.stream_hub import StreamHub
from footplate.stream.terminal_streams import RedisTerminalViews
from footplate.telemetry import metrics
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.wiring.model_connections import known_models, load_catalog
from footplate.wiring.shared_components import (
    check_redis,
    create_data_directory,
    create_delivery_service,
    freeze_loaded_objects,
    get_allowed_roots,
    get_backends,
    get_hook_access,
    open_database,
    open_objects,
)
from footplate.wiring.sign_in import create_single_sign_on
from footplate.wiring.telemetry import running_telemetry
from footplate.wiring.temporal_client import connect_temporal

log = structlog.get_logger(__name__)

_MAX_DIFFS: Final = 8
"""Concurrent diffs of one process. Each one runs git."""
_MAX_COUNT_SECONDS: Final = 2.0
"""How long a scrape waits for the database."""
_SEND_BUFFER: Final = 128 * 1024
_CLIENT_ERRORS: Final = (
    "ASGI callable returned without completing handshake",
    "Invalid HTTP request received",
    "Invalid UTF-8 sequence",
    "Unsupported upgrade request",
)
_MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Maximum size of a message from a WebSocket client. Clients have nothing to send; this only allows an error reply."""


async def run(settings: Settings) -> None:
    create_data_directory(settings)
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(running_telemetry(settings, "api"))
        database = await exits.enter_async_context(open_database(settings))
        await exits.enter_async_context(
            ApiProcessRegistry(database).registered(
                ids.new_id(ids.API_PROCESS), host=socket.gethostname(), version=__version__
            )
        )
        await check_redis(settings)
        temporal = await connect_temporal(settings)
        waker = TemporalWaker(temporal, settings)
        nudger = NudgeSender(settings.redis_url)
        exits.push_async_callback(nudger.aclose)
        webhooks = EndpointWaker(Webhooks(database), TemporalWebhookSignals(temporal, settings), nudge=nudger.nudge)
        await exits.enter_async_context(webhooks.running())
        live = await exits.enter_async_context(LivePublisher(settings.redis_url, on_change=webhooks.notify_change))
        objects = await open_objects(settings)
        redis = redis_connections.create_command_client(settings.redis_url)
        exits.push_async_callback(redis.aclose)
        reads = ApiReads(database, objects)
        hub = await exits.enter_async_context(StreamHub(settings.redis_url, reads, keepalive=settings.keepalive))
        feeds = await exits.enter_async_context(
            FeedHub(settings.redis_url, Feed(database, reads.positions), keepalive=settings.keepalive)
        )
        terminals = RedisTerminalViews(settings.redis_url)
        exits.push_async_callback(terminals.aclose)
        metrics.STREAMS.set_function(lambda: hub.open_streams + feeds.open_streams)
        metrics.SESSIONS.read_values = _ActivityCounts(database, asyncio.get_running_loop())
        limits = LimitStore(database, settings.default_limits)
        limit_guard = OrganisationLimitGuard(limits, RequestRates(redis), StreamCounts(redis))
        await exits.enter_async_context(limit_guard.renewing_stream_leases())
        export_limits(limit_guard, asyncio.get_running_loop())
        reader = DiffReader(settings.data_dir, objects, max_concurrent=_MAX_DIFFS)
        keys = ApiKeys(database, session_idle=settings.browser_session_idle)
        failures = SignInFailures(database, settings.oidc_organisation, limit=settings.sign_in_failures)
        sessions = BrowserSessionStore(
            *(database, keys, failures),
            lifetime=settings.browser_session_lifetime,
            idle=settings.browser_session_idle,
        )
        services = ApiServices(
            reads=reads,
            units=UnitOfWorkFactory(database, objects, limits),
            notifier=ChangeNotifier(
                live,
                nudger.nudge,
                waker,
                ChildCancellation(GroupCancellation(database, objects), waker, nudger.nudge, live.publish),
                DeploymentSchedules(temporal, settings, DeploymentScheduleStore(database)),
            ),
            tails=hub,
            feeds=feeds,
            terminals=terminals,
            webhooks=webhooks,
            webhook_access=settings.webhook_access,
            push_keys=PushKeys(database, settings.push_key),
            keys=keys,
            browser_sessions=sessions,
            device_authorizations=DeviceAuthorizationStore(
                database, failures, key_lifetime=settings.login_key_lifetime
            ),
            single_sign_on=create_single_sign_on(settings, database, keys, sessions, failures),
            limit_guard=limit_guard,
            health=ApiHealth(
                {
                    "database": lambda: database.fetch("heads", []),
                    "redis": redis.ping,
                    "temporal": temporal.service_client.check_health,
                    "objects": objects.check_access,
                }
            ),
            queues=QueueReports(temporal, settings),
            usage=UsageReader(database),
            diffs=_Diffs(DiffSnapshots(database, objects), reader),
            delivery=create_delivery_service(settings, database, reader),
            files=FileContents(database, objects),
            recordings=StoredTerminalRecordings(objects),
            max_file_bytes=settings.file_bytes,
            limits=settings.request_limits,
            harnesses=frozenset(registry.installed_harnesses()),
            transcripts=registry.load_transcripts,
            default_harness=settings.default_harness,
            prewarmed_harnesses=registry.harnesses_with_programs() if settings.slots else frozenset(),
            has_search=settings.search_provider is not None,
            toolsets=server_toolsets.installed_toolsets(),
            connections=load_catalog(settings),
            known_models=known_models,
            backends=get_backends(settings),
            hook_access=get_hook_access(settings),
            projects_root=settings.resolved_projects_root,
            named_roots=get_allowed_roots(settings),
            request_guard=RequestGuard.parse(settings.api_hosts, settings.allowed_origins),
            public_url=settings.public_url,
            ignore_unknown_fields=settings.ignore_unknown_fields,
        )
        config = LimitedConfig(
            create_app(services),
            services.limits,
            host=settings.host,
            port=settings.port,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            loop="uvloop",
            ws_max_size=_MAX_MESSAGE_BYTES,
            ws_ping_interval=settings.keepalive,
            ws_ping_timeout=2 * settings.keepalive,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=3,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_server_problem)
        logging.getLogger("python_multipart").setLevel(logging.ERROR)  # malformed forms are also the client's mistake
        freeze_loaded_objects()
        await _Server(config, (hub, feeds)).serve(sockets=[_bind_socket(settings.host, settings.port)])


def _is_server_problem(record: logging.LogRecord) -> bool:
    """Filter out log records about mistakes of clients, which are not errors of the server."""
    return not record.getMessage().startswith(_CLIENT_ERRORS)


def _bind_socket(host: str, port: int) -> socket.socket:
    """Bind the socket. Connections inherit its options: packets are sent immediately, and the send buffer is small, so
    a client that does not read cannot make the kernel buffer megabytes.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Conflict(
            f"The API cannot listen on {host}:{port}: {reason}.",
            help_text="Stop the program that uses this address, or choose another with --host and --port, or with "
            "FOOTPLATE_HOST and FOOTPLATE_PORT.",
        ) from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return listener


class _Server(uvicorn.Server):
    """Ends its streams on shutdown, so that clients reconnect to another replica immediately, not after a timeout."""

    def __init__(self, config: uvicorn.Config, hubs: tuple[StreamHub, FeedHub]) -> None:
        super().__init__(config)
        self._hubs = hubs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for hub in self._hubs:
            hub.end_streams()
        super().handle_exit(sig, frame)


class _Diffs:
    """Combines the diffs recorded in the log with git, which computes them."""

    def __init__(self, log: DiffSnapshots, reader: DiffReader) -> None:
        self.find_diffs = log.find_diffs
        self.list_changes = reader.changes
        self.quote_lines = reader.quote_lines
        self.stream_patch = reader.patch


class _ActivityCounts:
    """Counts sessions by activity for the metrics server, which runs in a thread. Without a scrape, nothing is read."""

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._loop = loop

    def __call__(self) -> Mapping[tuple[str, ...], float]:
        counting = asyncio.run_coroutine_threadsafe(self._count(), self._loop)
        try:
            return counting.result(_MAX_COUNT_SECONDS)
        except (FootplateError, TimeoutError):
            counting.cancel()
            return {}

    async def _count(self) -> Mapping[tuple[str, ...], float]:
        return {(state.value,): count for state, count in (await count_activities(self._database)).items()}
