"""Kill Claude Code, its worker or both at any moment: every turn ends, no tool runs twice, nothing of it lives on."""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench.prove import backends, core_2
from bench.prove.claude import work
from bench.prove.claude.victims import VICTIMS, Victim, kill
from bench.prove.clients import Client
from bench.prove.cluster import Cluster, open_cluster
from bench.prove.crash import fencing
from bench.prove.crash.crew import Crew
from bench.prove.crash.findings import Findings
from bench.prove.crash.survivors import LIMIT, Survivors
from bench.prove.crash.watcher import Watcher
from bench.prove.figure import Figure
from footplate.failpoints import POINTS

_SETTINGS: Final = {**core_2.SETTINGS, "FOOTPLATE_MAX_FAILURES": "1000"}
_PATIENCE: Final = 120.0
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    of_each: int
    """Turns that are broken off by each kind of kill, uniform over the turn."""
    at_points: Sequence[str]
    stopped_at: Sequence[str]
    """Where a worker is stopped, to wake up when another one has its turn."""


FULL: Final = Size(of_each=100, at_points=[point for point in POINTS for _ in range(12)], stopped_at=POINTS * 3)
QUICK: Final = Size(of_each=1, at_points=[], stopped_at=[])


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_at(QUICK if quick else FULL)


async def prove_at(size: Size) -> Figure:
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    moments: list[tuple[Victim, float]] = [
        (victim, (number + chance.random()) / size.of_each) for victim in VICTIMS for number in range(size.of_each)
    ]
    chance.shuffle(moments)
    async with (
        backends.settings(backends.default()) as settings,
        open_cluster(workers=2, environment={**_SETTINGS, **settings}) as cluster,
        Client(cluster, max_retries=12) as client,
        asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database,
        Survivors(cluster) as survivors,
    ):
        for name, script in {**fencing.scripts("Bash"), work.SCRIPT: work.script()}.items():
            await cluster.model.install(name, script)
        agent = await client.agent(extra_body={"harness": "claude"})
        matrix = _Matrix(cluster, client, Crew(cluster, survivors, database), agent)
        await matrix.measure()
        for number, (victim, moment) in enumerate(moments, start=1):
            await matrix.broken_off(victim, moment)
            if number % 20 == 0:
                print(f"  {number} of {len(moments)} kills", flush=True)
        for point in chance.sample(size.at_points, len(size.at_points)):
            await matrix.at_point(point, chance.random() / 2)
        for point in size.stopped_at:
            await matrix.stopped_at(point)
    return matrix.figure()


class _Matrix:
    """One turn after the other, each broken off once."""

    def __init__(self, cluster: Cluster, client: Client, crew: Crew, agent: str) -> None:
        self._cluster = cluster
        self._client = client
        self._crew = crew
        self._agent = agent
        self._found = Findings()
        self._hits: Counter[str] = Counter()
        self._unstarted = 0
        self._gone_after = 0.0
        self._turn = 0.0
        """Seconds that an undisturbed one takes."""

    async def measure(self) -> None:
        session_id = await self._session()
        async with Watcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, work.PROMPT)
            await self._crew.claimed(session_id)
            began = time.monotonic()
            await self._ended(session_id, watcher)
        self._turn = time.monotonic() - began
        print(f"  a turn of {work.CALLS} calls, undisturbed: {self._turn:.2f} s", flush=True)

    async def broken_off(self, victim: Victim, moment: float) -> None:
        """`moment`: from 0 to 1, of the turn's time. A turn that was quicker is followed by another."""
        for _ in range(_TRIES):
            if await self._hit(victim, moment * self._turn):
                return
        self._found.fault(f"no turn was still running at {moment:.2f} of its measured time")

    async def _hit(self, victim: Victim, after: float) -> bool:
        session_id = await self._session()
        async with Watcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, work.PROMPT)
            await self._crew.claimed(session_id)
            await asyncio.sleep(after)
            hit, death = await kill(victim, self._crew, session_id)
            self._hits[victim] += hit > 0
            if death is not None:
                self._gone_after = max(self._gone_after, death.aftermath.seconds)
                if death.aftermath.alive:
                    self._found.fault(f"alive {LIMIT:.0f} s after its worker: {death.aftermath.alive}")
            await self._ended(session_id, watcher)
            return hit > 0

    async def stopped_at(self, point: str) -> None:
        """A worker is stopped there, and wakes when another one has taken its turn over and ended it."""
        trial = await fencing.stop_at(
            self._cluster, self._client, self._agent, point, wake_early=False, unstarted=work.unstarted
        )
        self._found.fault(*trial.faults)
        self._hits["stopped"] += 1

    async def at_point(self, point: str, moment: float) -> None:
        """A worker kills itself there."""
        armed, hit = (self._cluster.failpoints / name for name in (point, f"{point}.hit"))
        hit.unlink(missing_ok=True)
        session_id = await self._session()
        async with Watcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, work.PROMPT)
            await self._crew.claimed(session_id)
            await asyncio.sleep(moment * self._turn)
            armed.write_text("kill")
            dead = await self._crew.killed_itself(patience=_PATIENCE)
            if dead is None:
                self._found.fault(f"no turn came to {point}")
                armed.unlink(missing_ok=True)
            else:
                self._hits[point] += 1
                self._gone_after = max(self._gone_after, dead[1].aftermath.seconds)
                await self._cluster.restart_worker(dead[0])
            await self._ended(session_id, watcher)

    async def _session(self) -> str:
        return await self._client.session(self._agent, title=secrets.token_hex(8))

    async def _ended(self, session_id: str, watcher: Watcher) -> None:
        await watcher.ended(patience=_PATIENCE)
        found, unstarted = await work.judged(self._cluster, session_id, watcher.seen)
        self._found.add(found)
        self._unstarted += unstarted

    def figure(self) -> Figure:
        found = self._found
        points = sum(count for name, count in self._hits.items() if name in POINTS)
        text = (
            f"SIGKILL of the CLI {self._hits['cli']} times, of its worker {self._hits['worker']}, of both "
            f"{self._hits['both']}, uniform over a turn of {work.CALLS} calls, and {points} at failpoints: all "
            f"{found.turns} turns ended, in {found.attempts} attempts; {found.calls} calls none of which ran twice, "
            f"{found.unknown} said to be unknown, {self._unstarted} lost before they began; {found.positions} "
            f"positions without gap, duplicate or loss; last process gone after {self._gone_after:.2f} s; "
            f"{self._hits['stopped']} workers that were stopped and woke later wrote and executed nothing"
        )
        if found.faults:
            text = f"{len(found.faults)} faults, the first: {found.faults[0]}"
        return Figure(text=text, holds=not found.faults, details={"faults": [*found.faults], **self._hits})
