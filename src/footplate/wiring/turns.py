"""Builds what runs the turns of a worker: the runner with everything that a turn uses, the harnesses, the warm
processes and the worker's lease.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from footplate.config import Settings
from footplate.domain.errors import NotFound
from footplate.domain.files.attachments import Attachment, AttachmentFailed
from footplate.domain.ports.engine import Environments, Trees
from footplate.domain.ports.harness import Harness, HarnessServices, McpAccess, SearchProvider, WebAccess
from footplate.domain.sessions.groups import ChildLimits
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.deferred_turn_starter import DeferredTurnStarter
from footplate.engine.turn.runner import TurnLimits, TurnRunner, TurnServices
from footplate.engine.warm.prewarming import Prewarmer
from footplate.engine.warm.warm_pool import WarmPool
from footplate.engine.worker_lease import WorkerLease
from footplate.gate.turn_gate import TurnGateFactory
from footplate.harness import registry
from footplate.harness.attachment_download import AttachmentFetcher
from footplate.proxy.model_proxy import ModelProxy
from footplate.store.leases.branch_and_directory_leases import WriteLeases
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.deferred_turns import DeferredTurns
from footplate.store.log.fenced_turn_writes import Turns
from footplate.store.log.session_groups.child_sessions import ChildSessionStore
from footplate.store.log.turn_claims import Claims
from footplate.store.resources.audit_trail import HookRunRecorder
from footplate.store.resources.files import FileContents
from footplate.store.resources.policies import SessionRuleLoader
from footplate.stream.nudges import NudgeListener
from footplate.stream.terminal_streams import RedisTerminalChannels
from footplate.stream.turn_publisher import TurnPublishers
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.wiring.connections import Connections, Notifiers
from footplate.wiring.model_connections import load_endpoints
from footplate.wiring.session_files import create_output_directories, create_tree_setup
from footplate.wiring.shared_components import create_delivery_service, get_hook_access

_MAX_DELIVERY_READS: Final = 4
"""Concurrent downloads of sessions' files, for steps that deliver."""


@asynccontextmanager
async def open_turn_runner(
    connections: Connections,
    notifiers: Notifiers,
    *,
    worker: str,
    leases: WorkerLeases,
    nudges: NudgeListener,
    trees: Trees,
    environments: Environments,
    find_harness: Callable[[str], Harness] | None,
    stopping: asyncio.Event,
) -> AsyncIterator[TurnRunner]:
    """Holds the lease of the worker meanwhile. `find_harness`: None for the installed harnesses."""
    settings, database, objects = connections.settings, connections.database, connections.objects
    limits, web_access = connections.limits, _get_web_access(settings)
    async with AsyncExitStack() as exits:
        models = await exits.enter_async_context(ModelProxy(*load_endpoints(settings)))
        find_harness = find_harness or _load_harnesses(settings, models, web_access).get
        lease = WorkerLease(leases, worker_id=worker, host=socket.gethostname(), lease_seconds=settings.lease)

        def create_pool(max_processes: int, seconds: float) -> WarmPool:
            return WarmPool(
                max_processes=max_processes, max_idle_seconds=seconds, deadline=lambda: lease.deadline, nudges=nudges
            )

        claims = Claims(
            database,
            objects,
            default_harness=settings.default_harness,
            limits=limits,
            backends=settings.backend_names,
        )
        turns = Turns(database, objects, limits)
        conversations = ConversationCache(
            turns, max_bytes=settings.kept_megabytes << 20, max_idle_seconds=settings.kept_seconds
        )
        warm_pool = create_pool(settings.kept_sessions, settings.kept_seconds)
        prewarmer = Prewarmer(
            create_pool(settings.slots, settings.slot_seconds),
            claims=claims,
            conversations=conversations,
            environments=environments,
            models=models,
            harness=find_harness,
            deadline=lambda: lease.deadline,
        )
        deferred = DeferredTurnStarter(DeferredTurns(database, limits), notifiers.waker)
        terminal_channels = RedisTerminalChannels(settings.redis_url)
        exits.push_async_callback(terminal_channels.aclose)
        for running in (lease.running(), warm_pool.running(), prewarmer.running(), deferred.running()):
            await exits.enter_async_context(running)
        yield TurnRunner(
            TurnServices(
                claims=claims,
                turns=turns,
                live=TurnPublishers(notifiers.live),
                nudges=nudges,
                waker=notifiers.waker,
                environments=environments,
                gate_factory=TurnGateFactory(
                    SessionRuleLoader(database, settings.resolved_projects_root),
                    HookRunRecorder(database),
                    get_hook_access(settings),
                ),
                trees=trees,
                tree_setup=create_tree_setup(connections),
                setup_seconds=settings.setup_seconds,
                output_directories=create_output_directories(connections),
                write_leases=WriteLeases(database) if settings.allowed_directory_roots else None,
                attachment_sources=_AttachmentSources(
                    FileContents(database, objects), AttachmentFetcher(web_access, max_bytes=settings.file_bytes)
                ),
                snapshot_each_call=settings.snapshots == "calls",
                delivery=create_delivery_service(
                    settings, database, DiffReader(settings.data_dir, objects, max_concurrent=_MAX_DELIVERY_READS)
                ),
                terminal_channels=terminal_channels,
                child_cancellation=notifiers.child_cancellation,
                children=ChildSessionStore(
                    database,
                    objects,
                    limits=limits,
                    child_limits=ChildLimits(max_depth=settings.child_depth, max_sessions=settings.child_sessions),
                ),
                models=models,
                find_harness=find_harness,
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
                stopping=stopping,
                on_turn_slot_free=deferred.check_soon,
            )
        )


def _load_harnesses(settings: Settings, models: ModelProxy, web_access: WebAccess) -> registry.HarnessRegistry:
    """Loads the default harness at once. The others are loaded by their first turn."""
    harnesses = registry.HarnessRegistry(
        HarnessServices(
            models.endpoints,
            web_access,
            settings.starts,
            McpAccess(allow=settings.mcp_allowed, call_seconds=settings.mcp_call_seconds),
            settings.subagent_hold,
            models.in_process,
        )
    )
    harnesses.get(settings.default_harness)
    return harnesses


def _get_web_access(settings: Settings) -> WebAccess:
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
