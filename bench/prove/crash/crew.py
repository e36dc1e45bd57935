"""The two workers of a cluster: who holds what, and how one is killed and comes back."""

import asyncio
from dataclasses import dataclass, field
from typing import Self

import asyncpg

from bench.prove.cluster import Cluster
from bench.prove.crash.survivors import Aftermath, Survivors
from bench.prove.figure import require
from footplate.domain import events
from footplate.stack.leftovers import wait_until

_IN_FLIGHT = """
select u.event_id from session_heads h
join events u on u.session_id = h.session_id and u.type = $2
where h.holder = $1 and h.status = 'running' and not exists (
    select from events r
    where r.session_id = u.session_id and r.type = $3 and r.body ->> 'tool_use_id' = u.event_id
)
"""
# What the dead worker had sent to the database may still commit; nobody takes its turns over before its heartbeat ends.
_SETTLING = 0.3


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that was killed while it was busy."""

    sessions: int
    """Turns that it held."""
    in_flight: frozenset[str]
    """Calls that had begun and had no result."""
    aftermath: Aftermath


@dataclass(slots=True)
class Crew:
    cluster: Cluster
    survivors: Survivors
    database: "asyncpg.Pool[asyncpg.Record]"
    ids: list[str] = field(default_factory=list)
    """Under which id each worker, by its number, is known to the database."""
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def learn(self) -> Self:
        """One worker is started anew: the id that is new is its own, the other one's is what remains."""
        await self.cluster.workers[0].stop()
        (other,) = await self._known()
        self.ids = ["", other]
        await self.restart(0)
        return self

    async def holder(self, session_id: str) -> int | None:
        """The number of the worker that runs the session's turn now."""
        found = await self.database.fetchval("select holder from session_heads where session_id = $1", session_id)
        return self.ids.index(found) if found in self.ids else None

    async def claimed(self, session_id: str, *, patience: float = 60.0) -> None:
        async def held() -> bool:
            return await self.holder(session_id) is not None

        require(holds=await wait_until(held, patience), otherwise=f"nobody took the turn of {session_id}")

    async def kill(self, number: int) -> Death:
        """SIGKILL, now."""
        self.survivors.look()
        pid = self.cluster.workers[number].pid
        assert pid is not None
        await self.cluster.kill_worker(number)
        return await self._dead(number, pid)

    async def killed_itself(self, *, patience: float) -> tuple[int, Death] | None:
        """Wait for a failpoint to kill one."""
        pids = [worker.pid for worker in self.cluster.workers]
        dead: list[int] = []

        async def one_dead() -> bool:
            dead[:] = [n for n, worker in enumerate(self.cluster.workers) if worker.pid and not worker.running]
            return bool(dead)

        if not await wait_until(one_dead, patience):
            return None
        pid = pids[dead[0]]
        assert pid is not None
        return dead[0], await self._dead(dead[0], pid)

    async def restart(self, number: int) -> None:
        """One at a time, so that the new id tells whose it is."""
        async with self._starting:
            before = await self._known()
            self.ids[number] = ""
            await self.cluster.restart_worker(number)
            (self.ids[number],) = await self._known() - before

    async def _dead(self, number: int, pid: int) -> Death:
        aftermath, (sessions, in_flight) = await asyncio.gather(
            self.survivors.after(pid), self._left_behind(self.ids[number])
        )
        return Death(sessions, in_flight, aftermath)

    async def _left_behind(self, holder: str) -> tuple[int, frozenset[str]]:
        await asyncio.sleep(_SETTLING)
        rows = await self.database.fetch(_IN_FLIGHT, holder, events.AGENT_TOOL_USE, events.AGENT_TOOL_RESULT)
        held = await self.database.fetchval(
            "select count(*) from session_heads where holder = $1 and status = 'running'", holder
        )
        return held, frozenset(row["event_id"] for row in rows)

    async def _known(self) -> set[str]:
        return {row["id"] for row in await self.database.fetch("select id from workers")}
