"""What all parts of core-2 work with: a cluster, a client, and turns that are watched and accounted for."""

import asyncio
import secrets
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.crash import work
from bench.support.crash.account import Account, account
from bench.support.crash.findings import Findings
from bench.support.crash.watcher import Watcher

_TOOK = "select extract(epoch from ended_at - started_at)::float from turns where session_id = $1"


@dataclass(slots=True)
class Cell:
    cluster: Cluster
    client: Client
    agent: str
    turn_time: float = 0.0
    """Of one undisturbed turn, in seconds."""
    findings: Findings = field(default_factory=Findings)

    async def session(self) -> str:
        """Under a name of its own: to the api a retry of one creation and another creation look the same otherwise."""
        return await self.client.session(self.agent, title=secrets.token_hex(8))

    async def turn(self, begun: Callable[[str], None] = lambda _: None) -> Account:
        """A session whose one turn is watched to its end and then accounted for. `begun` is told its id."""
        session_id = await self.session()
        async with Watcher(self.client, session_id) as watcher:
            await self.client.send_text(session_id, work.PROMPT)
            begun(session_id)
            await watcher.ended()
            found = await account(self.cluster, session_id, watcher.seen)
        self.findings.tallies["stream_cuts"] += watcher.cuts
        self.findings.add(found)
        return found

    async def begin(self, group: asyncio.TaskGroup) -> tuple[str, asyncio.Task[Account]]:
        """Return as soon as the turn's message is acknowledged; the rest goes on in the group."""
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = group.create_task(self.turn(begun.set_result))
        waiting: set[asyncio.Future[Any]] = {task, begun}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return begun.result(), task

    async def measure(self, turns: int) -> None:
        """How long a turn takes that nobody disturbs."""
        sessions = [(await self.turn()).session_id for _ in range(turns)]
        connection = await asyncpg.connect(self.cluster.settings.database_url)
        try:
            times = [await connection.fetchval(_TOOK, session_id) for session_id in sessions]
        finally:
            await connection.close()
        self.turn_time = statistics.median(times)
        print(f"  a turn of {work.CALLS} calls, undisturbed: {self.turn_time:.2f} s", flush=True)
