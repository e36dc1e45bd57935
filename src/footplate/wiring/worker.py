"""One worker process."""

import asyncio
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic import SecretStr

from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.ports import Endpoint, HarnessServices
from footplate.domain.running import LiveTurn, OpenEnvironment
from footplate.engine.activities import SweepActivities, TurnActivities
from footplate.engine.conversations import Conversations
from footplate.engine.leases import LeaseKeeper
from footplate.engine.turn import Limits, Parts, TurnRunner
from footplate.engine.wake import TemporalWaker
from footplate.engine.worker import run_worker
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.harness import registry
from footplate.store.claims import Claims
from footplate.store.leases import Leases
from footplate.store.objects import Objects
from footplate.store.turns import Turns
from footplate.stream.nudges import NudgeListener
from footplate.stream.publisher import Live
from footplate.stream.turn_live import TurnLive
from footplate.wiring.parts import connect_temporal, keep_what_is_loaded, open_database


async def run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as exits:
        database = await exits.enter_async_context(open_database(settings, patience=30, plans="force_generic_plan"))
        objects = Objects.open(settings.objects_url, settings.data_dir)
        leases = Leases(database)
        keeper = LeaseKeeper(leases, worker=ids.new_id(ids.WORKER), host=socket.gethostname(), lease=settings.lease)
        turns = Turns(database, objects)
        client = await connect_temporal(settings)
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
        keep_what_is_loaded()
        await run_worker(
            client,
            settings,
            TurnActivities(runner, heartbeat_timeout=settings.heartbeat_timeout),
            SweepActivities(leases, TemporalWaker(client, settings)),
            stop,
        )


def _endpoints(settings: Settings) -> dict[str, Endpoint]:
    found: dict[str, tuple[SecretStr | None, str | None]] = {
        "anthropic": (settings.anthropic_api_key, settings.anthropic_base_url),
        "openai": (settings.openai_api_key, settings.openai_base_url),
    }
    return {
        provider: Endpoint(key.get_secret_value(), url) for provider, (key, url) in found.items() if key is not None
    }


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
