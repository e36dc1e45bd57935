"""The composition root: the only place that knows every part. Each function runs one process of the product."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import FrameType

import stamina.instrumentation
import structlog
import uvicorn
from pydantic import SecretStr
from temporalio.client import Client

from footplate.api.app import create_app
from footplate.api.services import ApiServices
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.ports import Endpoint, HarnessServices
from footplate.domain.running import LiveTurn, OpenEnvironment, Waker
from footplate.domain.services import Accepted
from footplate.engine.activities import SweepActivities, TurnActivities
from footplate.engine.conversations import Conversations
from footplate.engine.leases import LeaseKeeper
from footplate.engine.turn import Limits, Parts, TurnRunner
from footplate.engine.wake import TemporalWaker
from footplate.engine.worker import run_worker as run_temporal_worker
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.harness import registry
from footplate.store import migrate as migrations
from footplate.store.claims import Claims
from footplate.store.database import Database
from footplate.store.keys import Keys
from footplate.store.leases import Leases
from footplate.store.objects import Objects
from footplate.store.reads import Reads
from footplate.store.turns import Turns
from footplate.store.units import Units
from footplate.stream.hub import Hub
from footplate.stream.nudges import NudgeListener, Nudger
from footplate.stream.publisher import Live
from footplate.stream.turn_live import TurnLive

log = structlog.get_logger(__name__)

DEFAULT_ORGANISATION = "default"


async def migrate(settings: Settings) -> None:
    await migrations.upgrade(settings.database_url)


async def create_key(settings: Settings, organisation: str, name: str, roles: list[str]) -> str:
    async with _database(settings) as database:
        return await Keys(database).create(organisation, name, roles)


async def bootstrap_key(settings: Settings) -> str:
    return await create_key(settings, DEFAULT_ORGANISATION, "first key", ["admin"])


async def run_api(settings: Settings) -> None:
    async with AsyncExitStack() as exits:
        database = await exits.enter_async_context(_database(settings))
        waker = TemporalWaker(await _temporal(settings), settings)
        live = await exits.enter_async_context(Live(settings.redis_url))
        nudger = Nudger(settings.redis_url)
        exits.push_async_callback(nudger.aclose)
        reads = Reads(database)
        hub = await exits.enter_async_context(Hub(settings.redis_url, reads, keepalive=settings.keepalive))
        services = ApiServices(
            reads=reads,
            units=Units(database, Objects.open(settings.objects_url, settings.data_dir)),
            notifier=_Notifier(live, nudger, waker),
            tails=hub,
            keys=Keys(database),
            health=_Health(database),
            harnesses=frozenset(registry.installed()),
            ignore_unknown_fields=settings.ignore_unknown_fields,
        )
        config = uvicorn.Config(
            create_app(services),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            lifespan="off",
            loop="uvloop",
            http="httptools",
            timeout_graceful_shutdown=3,
        )
        await _Server(config, hub).serve()


async def run_worker(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as exits:
        database = await exits.enter_async_context(_database(settings, patience=30))
        objects = Objects.open(settings.objects_url, settings.data_dir)
        leases = Leases(database)
        keeper = LeaseKeeper(leases, worker=ids.new_id(ids.WORKER), host=socket.gethostname(), lease=settings.lease)
        turns = Turns(database, objects)
        client = await _temporal(settings)
        harnesses = registry.Harnesses(HarnessServices(_endpoints(settings)))
        harnesses.get(settings.default_harness)
        runner = TurnRunner(
            Parts(
                claims=Claims(database, objects, default_harness=settings.default_harness),
                turns=turns,
                live=_LiveTurns(await exits.enter_async_context(Live(settings.redis_url))),
                nudges=await exits.enter_async_context(NudgeListener(settings.redis_url)),
                environments=_Unsandboxed(settings.data_dir / "workspaces"),
                harness=harnesses.get,
                leases=keeper,
                conversations=Conversations(turns, entries=settings.kept_entries),
                limits=Limits(
                    lease=settings.lease,
                    max_failures=settings.max_failures,
                    max_attempts=settings.max_attempts,
                    retry_wait=settings.retry_wait,
                    retry_wait_most=settings.retry_wait_most,
                ),
            )
        )
        await exits.enter_async_context(keeper.running())
        await run_temporal_worker(
            client,
            settings,
            TurnActivities(runner, heartbeat_timeout=settings.heartbeat_timeout),
            SweepActivities(leases, TemporalWaker(client, settings)),
            stop,
        )


@asynccontextmanager
async def _database(settings: Settings, *, patience: float = 5.0) -> AsyncIterator[Database]:
    # Waiting for a database that restarts is not an incident; giving up is, and that is logged where it is caught.
    stamina.instrumentation.set_on_retry_hooks([])
    database = await Database.open(settings.database_url, size=settings.database_pool, patience=patience)
    try:
        yield database
    finally:
        await database.close()


async def _temporal(settings: Settings) -> Client:
    try:
        return await Client.connect(settings.temporal_address, namespace=settings.temporal_namespace)
    except RuntimeError as error:
        raise Unavailable(
            f"Temporal at {settings.temporal_address} does not answer.",
            help_text="Start everything with `footplate dev`, or set FOOTPLATE_TEMPORAL_ADDRESS.",
        ) from error


def _endpoints(settings: Settings) -> dict[str, Endpoint]:
    found: dict[str, tuple[SecretStr | None, str | None]] = {
        "anthropic": (settings.anthropic_api_key, settings.anthropic_base_url),
        "openai": (settings.openai_api_key, settings.openai_base_url),
    }
    return {
        provider: Endpoint(key.get_secret_value(), url) for provider, (key, url) in found.items() if key is not None
    }


class _Server(uvicorn.Server):
    """Ends its streams when it is told to stop: clients go on at another replica at once, not after a timeout."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._hub.end()
        super().handle_exit(sig, frame)


class _Notifier:
    """Tells the tails, a running turn and the engine what was committed. What fails here is healed elsewhere."""

    def __init__(self, live: Live, nudger: Nudger, waker: Waker) -> None:
        self._live = live
        self._nudger = nudger
        self._waker = waker

    async def accepted(self, accepted: Accepted) -> None:
        await self._live.publish(accepted.organisation, accepted.session_id, accepted.positions)
        if accepted.nudge:
            await self._nudger.nudge(accepted.session_id)
        if accepted.wake:
            try:
                await self._waker.wake(accepted.organisation, accepted.session_id)
            except FootplateError as error:
                log.warning("not woken; the sweep will", action="wake.failed", reason=error.message)


class _LiveTurns:
    def __init__(self, live: Live) -> None:
        self._live = live

    def turn(self, organisation: str, session_id: str) -> LiveTurn:
        return TurnLive(self._live, organisation, session_id)


class _Unsandboxed:
    """A directory per session on this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def open(
        self, organisation: str, session_id: str, *, deadline: float, variables: Mapping[str, str]
    ) -> OpenEnvironment:
        directory = self._root / organisation / session_id
        directory.mkdir(parents=True, exist_ok=True)
        return UnsandboxedEnvironment(str(directory), deadline=deadline, env=variables)


class _Health:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> dict[str, str]:
        try:
            async with asyncio.timeout(2):
                await self._database.fetch("heads", [])
        except (FootplateError, TimeoutError) as error:
            return {"database": str(error) or "does not answer"}
        return {"database": "ok"}
