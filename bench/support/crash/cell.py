"""The cluster and client that all parts of core-2 share, and turns that are watched and checked."""

import asyncio
import secrets
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from bench.support.crash.findings import CrashFindings
from bench.support.crash.session_check import SessionAccount, check_session
from bench.support.crash.stream_watcher import StreamWatcher

_TOOK = "select extract(epoch from ended_at - started_at)::float from turns where session_id = $1"


@dataclass(slots=True)
class Cell:
    cluster: Cluster
    client: Client
    agent: str
    turn_time: float = 0.0
    """The seconds of one undisturbed turn."""
    findings: CrashFindings = field(default_factory=CrashFindings)
    session_fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each session, which the SDK does not know."""

    async def create_session(self) -> str:
        """Creates a session with a unique title. Otherwise the api could not tell a retry from another creation."""
        return await self.client.session(self.agent, title=secrets.token_hex(8), extra_body={**self.session_fields})

    async def run_turn(self, on_started: Callable[[str], None] = lambda _: None) -> SessionAccount:
        """Runs one turn in a new session, watches it to its end and checks it. `begun` receives the session id."""
        session_id = await self.create_session()
        async with StreamWatcher(self.client, session_id) as watcher:
            await self.client.send_text(session_id, interrupted_turn.PROMPT)
            on_started(session_id)
            await watcher.wait_for_turns()
            found = await check_session(self.cluster, session_id, watcher.seen)
        self.findings.tallies["stream_cuts"] += watcher.cuts
        self.findings.add(found)
        return found

    async def start_turn(self, group: asyncio.TaskGroup) -> tuple[str, asyncio.Task[SessionAccount]]:
        """Returns as soon as the turn's message is acknowledged. The rest continues in the group."""
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = group.create_task(self.run_turn(started.set_result))
        waiting: set[asyncio.Future[Any]] = {task, started}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return started.result(), task

    async def measure_turn_time(self, turns: int) -> None:
        """Measures how long an undisturbed turn takes."""
        sessions = [(await self.run_turn()).session_id for _ in range(turns)]
        connection = await asyncpg.connect(self.cluster.settings.database_url)
        try:
            times = [await connection.fetchval(_TOOK, session_id) for session_id in sessions]
        finally:
            await connection.close()
        self.turn_time = statistics.median(times)
        print(f"  a turn of {interrupted_turn.CALLS} calls, undisturbed: {self.turn_time:.2f} s", flush=True)
