"""Finds which worker runs a session, kills it, and records its death."""

import asyncio
import re
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.crash.surviving_processes import Aftermath, ProcessTracker
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until

_LEASE_LINE: Final = re.compile(r'"action": "lease\.held", "worker": "(\w+)"')
_IN_FLIGHT: Final = """
select u.event_id from session_heads h
join events u on u.session_id = h.session_id and u.type = $2
where h.holder = $1 and h.status = 'running' and not exists (
    select from events r
    where r.session_id = u.session_id and r.type = $3 and r.body ->> 'tool_use_id' = u.event_id
)
"""
# Statements that the dead worker sent may still commit. No worker takes its turns over before its heartbeat ends.
_SETTLE_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class WorkerDeath:
    """A worker that was killed while it was busy."""

    sessions: int
    """The number of turns that it ran."""
    in_flight: frozenset[str]
    """Calls that had started and had no result."""
    aftermath: Aftermath


@dataclass(slots=True)
class WorkerDeaths:
    cluster: Cluster
    survivors: ProcessTracker
    database: "asyncpg.Pool[asyncpg.Record]"

    async def find_worker(self, session_id: str) -> int | None:
        """Returns the number of the worker that runs the session's turn."""
        found = await self.database.fetchval("select holder from session_heads where session_id = $1", session_id)
        ids = [self.read_worker_id(number) for number in range(len(self.cluster.workers))]
        return ids.index(found) if found in ids else None

    def read_worker_id(self, number: int) -> str:
        """Returns the worker's id in the database since its last start."""
        found = _LEASE_LINE.findall(self.cluster.workers[number].log.read_text())
        return found[-1] if found else ""

    async def wait_claimed(self, session_id: str, *, patience: float = 60.0) -> None:
        async def held() -> bool:
            return await self.find_worker(session_id) is not None

        require(holds=await wait_until(held, patience), otherwise=f"no worker took the turn of {session_id}")

    async def kill_worker(self, number: int) -> WorkerDeath:
        """Kills a worker with SIGKILL."""
        self.survivors.record_processes()
        pid = self.cluster.workers[number].pid
        assert pid is not None
        await self.cluster.kill_worker(number)
        return await self._record_death(number, pid)

    async def wait_for_failpoint(self, *, patience: float) -> tuple[int, WorkerDeath] | None:
        """Waits until a failpoint has killed a worker."""
        pids = [worker.pid for worker in self.cluster.workers]
        dead: list[int] = []

        async def one_dead() -> bool:
            dead[:] = [n for n, worker in enumerate(self.cluster.workers) if worker.pid and not worker.is_running]
            return bool(dead)

        if not await wait_until(one_dead, patience):
            return None
        pid = pids[dead[0]]
        assert pid is not None
        return dead[0], await self._record_death(dead[0], pid)

    async def _record_death(self, number: int, pid: int) -> WorkerDeath:
        aftermath, (sessions, in_flight) = await asyncio.gather(
            self.survivors.wait_until_gone(pid), self._read_interrupted(self.read_worker_id(number))
        )
        return WorkerDeath(sessions, in_flight, aftermath)

    async def _read_interrupted(self, holder: str) -> tuple[int, frozenset[str]]:
        await asyncio.sleep(_SETTLE_SECONDS)
        rows = await self.database.fetch(_IN_FLIGHT, holder, events.AGENT_TOOL_USE, events.AGENT_TOOL_RESULT)
        held = await self.database.fetchval(
            "select count(*) from session_heads where holder = $1 and status = 'running'", holder
        )
        return held, frozenset(row["event_id"] for row in rows)
