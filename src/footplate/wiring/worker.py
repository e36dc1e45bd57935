"""Builds and runs one worker process."""

import asyncio
import resource
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import structlog
from pydantic import SecretStr

from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.parts import Part, PartFailed
from footplate.domain.ports import Endpoint, HarnessServices, McpAccess, SearchProvider, WebAccess
from footplate.domain.running import LiveTurn
from footplate.engine.activities import SweepActivities, TurnActivities
from footplate.engine.conversations import Conversations
from footplate.engine.kept import KeptHarnesses
from footplate.engine.leases import LeaseKeeper
from footplate.engine.slots import Slots
from footplate.engine.turn import Limits, Parts, TurnRunner
from footplate.engine.wake import TemporalWaker
from footplate.engine.worker import run_worker
from footplate.environments.opening import WORKSPACES, forget
from footplate.environments.reaper.patrol import Patrol
from footplate.environments.reaper.workspaces import Workspaces
from footplate.gate.door import Gates
from footplate.harness import registry
from footplate.harness.fetching import Fetcher
from footplate.proxy.models import ModelProxy
from footplate.store.approvals import ExpiredAsks
from footplate.store.audit import HookTrail, Sealing
from footplate.store.claims import Claims
from footplate.store.expiry import Expiry
from footplate.store.files import FileObjects, FileRemovals
from footplate.store.leases import Leases
from footplate.store.objects import Objects
from footplate.store.policies import Rules
from footplate.store.retention import Retention
from footplate.store.retention_deletions import Deletions
from footplate.store.session_log import SessionLog
from footplate.store.turns import TURN_STATEMENTS, Turns
from footplate.store.write_leases import WriteLeases
from footplate.stream.forgetting import Forgetter
from footplate.stream.nudges import NudgeListener
from footplate.stream.publisher import Live
from footplate.stream.turn_live import TurnLive
from footplate.trees.keeping import Keeper
from footplate.trees.sessions import SessionTrees
from footplate.wiring.collecting import collecting
from footplate.wiring.environments import choose_environments
from footplate.wiring.observing import observed
from footplate.wiring.parts import connect_temporal, hook_access, keep_what_is_loaded, mirrors_of, open_database


async def run(settings: Settings) -> None:
    _take_all_descriptors()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(observed(settings, "worker"))
        database = await exits.enter_async_context(open_database(settings, patience=30, plans="force_generic_plan"))
        objects = Objects.open(settings.objects_url, settings.data_dir)
        worker = ids.new_id(ids.WORKER)
        leases = Leases(database)
        trees = _trees(settings, objects)
        chosen = await choose_environments(settings, worker=worker, lapsed=leases.lapsed, trees=trees)
        workspaces = Workspaces(
            settings.data_dir,
            SessionLog(database),
            mark_for_rebuild=trees.mark_for_rebuild,
            released_after=settings.retention_trees,
        )
        patrol = Patrol(settings.data_dir, chosen.groups, workspaces, chosen.sweeps)
        keeper = LeaseKeeper(leases, worker=worker, host=socket.gethostname(), lease=settings.lease)
        structlog.contextvars.bind_contextvars(worker=keeper.worker)
        turns = Turns(database, objects)
        client = await connect_temporal(settings)
        models = await exits.enter_async_context(ModelProxy(_endpoints(settings)))
        services = HarnessServices(
            models.endpoints,
            _web(settings),
            settings.starts,
            _mcp(settings),
            settings.subagent_hold,
            models.in_process,
        )
        harnesses = registry.Harnesses(services)
        harnesses.get(settings.default_harness)
        claims = Claims(database, objects, default_harness=settings.default_harness)
        conversations = Conversations(turns, max_bytes=settings.kept_megabytes << 20, max_idle_seconds=settings.kept_seconds)

        def bounded(most: int, seconds: float) -> KeptHarnesses:
            return KeptHarnesses(most=most, seconds=seconds, deadline=lambda: keeper.deadline)

        kept = bounded(settings.kept_sessions, settings.kept_seconds)
        slots = Slots(
            bounded(settings.slots, settings.slot_seconds),
            claims=claims,
            conversations=conversations,
            environments=chosen.environments,
            models=models,
            harness=harnesses.get,
            deadline=lambda: keeper.deadline,
        )
        runner = TurnRunner(
            Parts(
                claims=claims,
                turns=turns,
                live=_LiveTurns(await exits.enter_async_context(Live(settings.redis_url))),
                nudges=await exits.enter_async_context(NudgeListener(settings.redis_url)),
                environments=chosen.environments,
                gates=Gates(Rules(database, settings.projects_place), HookTrail(database), hook_access(settings)),
                trees=trees,
                writers=WriteLeases(database) if settings.directory_roots else None,
                sources=_Sources(FileObjects(database, objects), Fetcher(services.web, max_bytes=settings.file_bytes)),
                files_of_each_call=settings.snapshots == "calls",
                models=models,
                harness=harnesses.get,
                leases=keeper,
                conversations=conversations,
                kept=kept,
                slots=slots,
                limits=Limits(
                    lease=settings.lease,
                    max_failures=settings.max_failures,
                    max_attempts=settings.max_attempts,
                    retry_wait=settings.retry_wait,
                    retry_wait_most=settings.retry_wait_most,
                ),
                stopping=stop,
            )
        )
        await exits.enter_async_context(patrol.running())
        await exits.enter_async_context(collecting(database, objects, settings.gc_grace))
        await exits.enter_async_context(keeper.running())
        await exits.enter_async_context(kept.running())
        await exits.enter_async_context(slots.running())
        forgetter = Forgetter(settings.redis_url)
        exits.push_async_callback(forgetter.aclose)
        deletions = Deletions(database, objects, _Forget(forgetter, settings.data_dir / WORKSPACES))
        retention = Retention(database, objects, settings.retention)
        expiry, removals = Expiry(database, settings.retention_delete), FileRemovals(database, objects)
        urgent = (Sealing(database), ExpiredAsks(database, objects))
        chores = (deletions, retention, expiry, removals)
        sweep = SweepActivities(leases, TemporalWaker(client, settings), chores, urgent=urgent)
        exits.push_async_callback(sweep.aclose)
        await database.plan_statements(TURN_STATEMENTS)
        keep_what_is_loaded()
        await run_worker(
            client, settings, TurnActivities(runner, heartbeat_timeout=settings.heartbeat_timeout), sweep, stop
        )


def _take_all_descriptors() -> None:
    """Raise the limit on open files to the maximum. Turns need pipes and sockets; a sandbox never gets more than half
    of the worker's limit.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _endpoints(settings: Settings) -> dict[str, Endpoint]:
    """Return the endpoints with the providers' own keys, for the model proxy only."""
    found: dict[str, tuple[SecretStr | None, str | None]] = {
        "anthropic": (settings.anthropic_api_key, settings.anthropic_base_url),
        "openai": (settings.openai_api_key, settings.openai_base_url),
    }
    return {
        provider: Endpoint(key.get_secret_value(), url) for provider, (key, url) in found.items() if key is not None
    }


def _web(settings: Settings) -> WebAccess:
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


def _trees(settings: Settings, objects: Objects) -> SessionTrees:
    return SessionTrees(settings.data_dir, mirrors_of(settings), Keeper(objects), seconds=settings.git_seconds)


def _mcp(settings: Settings) -> McpAccess:
    return McpAccess(allow=settings.mcp_allowed, call_seconds=settings.mcp_call_seconds)


class _Sources:
    """Loads attachments: uploaded files of the turn's organisation, and URLs."""

    def __init__(self, files: FileObjects, fetcher: Fetcher) -> None:
        self._files = files
        self.url = fetcher.fetch

    async def size(self, organisation: str, file_id: str) -> int:
        try:
            return (await self._files.find(organisation, file_id)).size_bytes
        except NotFound as error:
            raise _gone(file_id) from error

    async def file(self, organisation: str, file_id: str) -> Part:
        try:
            file, data = await self._files.read(organisation, file_id)
        except NotFound as error:
            raise _gone(file_id) from error
        return Part(data, file.mime_type, file.filename, file.id)


def _gone(file_id: str) -> PartFailed:
    return PartFailed(
        f"The file {file_id!r} in the input does not exist any more.",
        help_text="It was deleted or has expired. Upload it again, and send the message with the new id.",
    )


class _LiveTurns:
    def __init__(self, live: Live) -> None:
        self._live = live

    def turn(self, organisation: str, session_id: str) -> LiveTurn:
        return TurnLive(self._live, organisation, session_id)


class _Forget:
    """Removes the traces of a deleted session: its data in Redis, and its directory if it is on this machine."""

    def __init__(self, forgetter: Forgetter, workspaces: Path) -> None:
        self._forgetter = forgetter
        self._workspaces = workspaces

    async def __call__(self, organisation: str, session_id: str) -> None:
        await self._forgetter.forget(organisation, session_id)
        await forget(self._workspaces, organisation, session_id)
