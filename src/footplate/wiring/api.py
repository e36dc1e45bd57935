"""Builds an API from all packages, and runs the API process.

Tests call an API in their own process: `Overrides` names what they may replace. Everything else is what production
uses.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI

from footplate import __version__
from footplate.api.app import create_app
from footplate.api.requests.organisation_limit_guard import OrganisationLimitGuard, export_limits
from footplate.api.server.service_health import ApiHealth
from footplate.api.service_container import ApiServices
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.errors import FootplateError
from footplate.domain.network.host_and_origin_check import RequestGuard
from footplate.engine.temporal.queue_reports import QueueReports
from footplate.harness import registry
from footplate.harness.tool_calls import server_toolsets
from footplate.store.api_reads import ApiReads
from footplate.store.database import Database
from footplate.store.leases.api_process_registry import ApiProcessRegistry
from footplate.store.log.feed import Feed
from footplate.store.log.files.diff_snapshots import DiffSnapshots
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.files import FileContents
from footplate.store.resources.notifications import PushKeys
from footplate.store.resources.session_states import count_activities
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.device_authorizations import DeviceAuthorizationStore
from footplate.store.resources.sign_in.failures import SignInFailures
from footplate.store.resources.terminal_recordings import StoredTerminalRecordings
from footplate.store.resources.usage_report import UsageReader
from footplate.store.unit_of_work import UnitOfWorkFactory
from footplate.stream import redis_connections
from footplate.stream.feed.feed_hub import FeedHub
from footplate.stream.organisation_counters import RequestRates, StreamCounts
from footplate.stream.stream_hub import StreamHub
from footplate.stream.terminal_streams import RedisTerminalViews
from footplate.telemetry import metrics
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.wiring.api_server import ApiServer
from footplate.wiring.connections import Overrides, open_connections, open_notifiers
from footplate.wiring.model_connections import known_models, load_catalog
from footplate.wiring.shared_components import (
    create_data_directory,
    create_delivery_service,
    freeze_loaded_objects,
    get_allowed_roots,
    get_backends,
    get_hook_access,
)
from footplate.wiring.sign_in import create_single_sign_on
from footplate.wiring.telemetry import running_telemetry

_MAX_DIFFS: Final = 8
"""Concurrent diffs of one process. Each one runs git."""
_MAX_COUNT_SECONDS: Final = 2.0
"""How long a scrape waits for the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    app: FastAPI
    database: Database
    limit_guard: OrganisationLimitGuard
    streams: StreamHub
    feeds: FeedHub

    def end_streams(self) -> None:
        self.streams.end_streams()
        self.feeds.end_streams()

    def export_metrics(self) -> None:
        """Let the metrics of this process report the API. The metrics server reads them in a thread."""
        loop = asyncio.get_running_loop()
        metrics.STREAMS.set_function(lambda: self.streams.open_streams + self.feeds.open_streams)
        metrics.SESSIONS.read_values = _ActivityCounts(self.database, loop)
        export_limits(self.limit_guard, loop)


async def run(settings: Settings) -> None:
    create_data_directory(settings)
    async with running_telemetry(settings, "api"), build_api(settings) as api:
        api.export_metrics()
        freeze_loaded_objects()
        await ApiServer(settings, api.app, api.end_streams).run_until_signal()


@asynccontextmanager
async def build_api(settings: Settings, overrides: Overrides | None = None) -> AsyncIterator[Api]:
    """Connects to the services, and builds the ASGI application and everything that its routes use."""
    async with AsyncExitStack() as exits:
        connections = await exits.enter_async_context(open_connections(settings, overrides or Overrides()))
        database, objects, limits = connections.database, connections.objects, connections.limits
        process = ApiProcessRegistry(database).registered(
            ids.new_id(ids.API_PROCESS), host=socket.gethostname(), version=__version__
        )
        await exits.enter_async_context(process)
        notifiers = await exits.enter_async_context(open_notifiers(connections))
        redis = redis_connections.create_command_client(settings.redis_url)
        exits.push_async_callback(redis.aclose)
        reads = ApiReads(database, objects)
        streams = await exits.enter_async_context(StreamHub(settings.redis_url, reads, keepalive=settings.keepalive))
        feeds = await exits.enter_async_context(
            FeedHub(settings.redis_url, Feed(database, reads.positions), keepalive=settings.keepalive)
        )
        terminals = RedisTerminalViews(settings.redis_url)
        exits.push_async_callback(terminals.aclose)
        limit_guard = OrganisationLimitGuard(limits, RequestRates(redis), StreamCounts(redis))
        await exits.enter_async_context(limit_guard.renewing_stream_leases())
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
            notifier=notifiers.changes,
            tails=streams,
            feeds=feeds,
            terminals=terminals,
            webhooks=notifiers.endpoint_waker,
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
                    "temporal": connections.temporal.service_client.check_health,
                    "objects": objects.check_access,
                }
            ),
            queues=QueueReports(connections.temporal, settings),
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
        yield Api(app=create_app(services), database=database, limit_guard=limit_guard, streams=streams, feeds=feeds)


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
