"""Kill Claude Code, its worker or both at any time: every turn ends, no tool runs twice, no process survives."""

import asyncio
import functools
import random
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from bench.claims.core import kill_any_process
from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.claude import interrupted_turn, process_kills
from bench.support.claude.process_kills import VICTIMS, Victim, kill_victim
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import fencing
from bench.support.crash.findings import CrashFindings
from bench.support.crash.stream_watcher import StreamWatcher
from bench.support.crash.surviving_processes import LIMIT, ProcessTracker
from bench.support.crash.worker_deaths import WorkerDeath, WorkerDeaths
from footplate.failpoints import POINTS
from footplate.stack.orphan_processes import wait_until

# No CLI stays warm for the next turn, so any process that is alive after a turn is an orphan.
_SETTINGS: Final = {**kill_any_process.SETTINGS, "FOOTPLATE_MAX_FAILURES": "1000", "FOOTPLATE_KEPT_SESSIONS": "0"}
_TIMEOUT_SECONDS: Final = 120.0
_MAX_MISSES: Final = 25
_SHORTEN_FACTOR: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    victims: Sequence[Victim]
    kills_per_victim: int
    """The turns that each kind of kill interrupts, uniformly distributed over the turn."""
    at_points: Sequence[str]
    stopped_at: Sequence[str]
    """The failpoints at which a worker is stopped; it wakes when another one has its turn."""
    clusters: int
    """The clusters that run at once, each with a share of the kills."""


FULL: Final = Size(
    victims=VICTIMS,
    kills_per_victim=100,
    at_points=[point for point in POINTS for _ in range(12)],
    stopped_at=POINTS * 3,
    clusters=3,
)
QUICK: Final = Size(victims=("cli", "worker"), kills_per_victim=1, at_points=[], stopped_at=[], clusters=1)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_at(QUICK if quick else FULL)


async def prove_at(size: Size) -> Figure:
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    kill_times: list[tuple[Victim, float]] = [
        (victim, (number + chance.random()) / size.kills_per_victim)
        for victim in size.victims
        for number in range(size.kills_per_victim)
    ]
    chance.shuffle(kill_times)
    at_points = chance.sample(size.at_points, len(size.at_points))
    tally = _Tally()
    async with asyncio.TaskGroup() as group:
        for number in range(size.clusters):
            share = slice(number, None, size.clusters)
            group.create_task(_run_cluster(tally, kill_times[share], at_points[share], size.stopped_at[share]))
    return tally.figure()


async def _run_cluster(
    tally: "_Tally", kill_times: Sequence[tuple[Victim, float]], at_points: Sequence[str], stopped_at: Sequence[str]
) -> None:
    """Runs one turn after the other and interrupts each once. It mostly waits for leases to expire."""
    async with (
        environment_backends.backend_settings(environment_backends.default_backend()) as settings,
        open_cluster(workers=2, environment={**_SETTINGS, **settings}) as cluster,
        Client(cluster, max_retries=12) as client,
        asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database,
        ProcessTracker(cluster) as survivors,
    ):
        for name, script in {
            **fencing.build_scripts("Bash"),
            interrupted_turn.SCRIPT: interrupted_turn.build_script(),
        }.items():
            await cluster.model.install(name, script)
        agent = await client.agent(extra_body={"harness": "claude"})
        matrix = _Killer(tally, cluster, client, WorkerDeaths(cluster, survivors, database), agent)
        await matrix.measure()
        for victim, moment in kill_times:
            await matrix.kill_at_time(victim, moment)
        for point in at_points:
            await matrix.kill_at_failpoint(point, random.random() / 2)
        for point in stopped_at:
            await matrix.stop_at_failpoint(point)


@dataclass(slots=True)
class _Tally:
    """The findings of all clusters."""

    found: CrashFindings = field(default_factory=CrashFindings)
    hits: Counter[str] = field(default_factory=Counter)
    unstarted: int = 0
    gone_after: float = 0.0

    def count_hit(self, kind: str) -> None:
        self.hits[kind] += 1
        if (count := sum(self.hits.values())) % 20 == 0:
            print(f"  {count} turns interrupted by kills", flush=True)

    def count_death(self, death: WorkerDeath) -> None:
        self.gone_after = max(self.gone_after, death.aftermath.seconds)
        if death.aftermath.alive:
            self.found.record_faults(f"still alive {LIMIT:.0f} s after its worker: {death.aftermath.alive}")

    def figure(self) -> Figure:
        found, hits = self.found, self.hits
        points = sum(count for name, count in hits.items() if name in POINTS)
        kills = hits["cli"] + hits["worker"] + hits["both"] + points
        headline = f"{kills} kills: all {found.turns:,} turns ended, none of {found.calls:,} calls ran twice"
        summary = (
            f"SIGKILL of the CLI {hits['cli']} times, of its worker {hits['worker']}, of both {hits['both']}, at "
            f"random times of a turn of {interrupted_turn.CALLS} calls, and {points} at failpoints: all "
            f"{found.turns} turns ended, "
            f"in {found.attempts} attempts; none of {found.calls} calls ran twice, {found.unknown} have an unknown "
            f"outcome, {self.unstarted} were lost before they began; {found.positions} positions without gap, "
            f"duplicate or loss; last process gone after {self.gone_after:.2f} s; {hits['stopped']} workers that were "
            "stopped and woke later wrote and executed nothing"
        )
        if found.faults:
            headline = f"{kills} kills: {len(found.faults)} faults"
            summary = f"{len(found.faults)} faults, the first: {found.faults[0]}"
        return Figure(
            headline=headline, summary=summary, holds=not found.faults, details={"faults": [*found.faults], **hits}
        )


class _Killer:
    """Interrupts the turns of one cluster in every way."""

    def __init__(self, tally: _Tally, cluster: Cluster, client: Client, crew: WorkerDeaths, agent: str) -> None:
        self._cluster = cluster
        self._client = client
        self._crew = crew
        self._agent = agent
        self._tally = tally
        self._turn = 0.0
        """Seconds that an undisturbed turn takes."""

    async def measure(self) -> None:
        session_id = await self._create_session()
        async with StreamWatcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, interrupted_turn.PROMPT)
            await self._crew.wait_claimed(session_id)
            began = time.monotonic()
            await watcher.wait_for_turns(patience=_TIMEOUT_SECONDS)
            self._turn = time.monotonic() - began
            await self._check_end(session_id, watcher)
        print(f"  a turn of {interrupted_turn.CALLS} calls, undisturbed: {self._turn:.2f} s", flush=True)

    async def kill_at_time(self, victim: Victim, fraction: float) -> None:
        """Kills at a fraction of the turn's duration, from 0 to 1. If the turn ended sooner, it tries with another."""
        for _ in range(_MAX_MISSES):
            if await self._kill_once(victim, fraction * self._turn):
                return
            self._turn *= _SHORTEN_FACTOR
        self._tally.found.record_faults(f"no turn was still running at {fraction:.2f} of its measured duration")

    async def _kill_once(self, victim: Victim, after: float) -> bool:
        session_id = await self._create_session()
        async with StreamWatcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, interrupted_turn.PROMPT)
            await self._crew.wait_claimed(session_id)
            claimed = time.monotonic()
            if victim == "cli":
                await wait_until(functools.partial(self._has_cli, session_id), after + 1.0)
            await asyncio.sleep(max(0.0, claimed + after - time.monotonic()))
            hit, death = await kill_victim(victim, self._crew, session_id)
            if hit:
                self._tally.count_hit(victim)
            if death is not None:
                self._tally.count_death(death)
            await self._check_end(session_id, watcher)
            return hit > 0

    async def _has_cli(self, session_id: str) -> bool:
        """Whether the session has a CLI process: in a turn's first milliseconds there is none to kill."""
        return bool(process_kills.list_cli_processes(self._cluster, session_id))

    async def stop_at_failpoint(self, point: str) -> None:
        """Stops a worker at the failpoint; it wakes when another one has taken over and ended its turn."""
        trial = await fencing.stop_at_failpoint(
            self._cluster,
            self._client,
            self._agent,
            point,
            wake_early=False,
            unstarted=interrupted_turn.count_unstarted,
        )
        self._tally.found.record_faults(*trial.faults)
        self._tally.count_hit("stopped")

    async def kill_at_failpoint(self, point: str, fraction: float) -> None:
        """Lets a worker kill itself at the failpoint."""
        armed, hit = (self._cluster.failpoints / name for name in (point, f"{point}.hit"))
        hit.unlink(missing_ok=True)
        session_id = await self._create_session()
        async with StreamWatcher(self._client, session_id) as watcher:
            await self._client.send_text(session_id, interrupted_turn.PROMPT)
            await self._crew.wait_claimed(session_id)
            await asyncio.sleep(fraction * self._turn)
            armed.write_text("kill")
            dead = await self._crew.wait_for_failpoint(patience=_TIMEOUT_SECONDS)
            if dead is None:
                self._tally.found.record_faults(f"no turn reached {point}")
                armed.unlink(missing_ok=True)
            else:
                self._tally.count_hit(point)
                self._tally.count_death(dead[1])
                await self._cluster.restart_worker(dead[0])
            await self._check_end(session_id, watcher)

    async def _create_session(self) -> str:
        return await self._client.session(self._agent, title=secrets.token_hex(8))

    async def _check_end(self, session_id: str, watcher: StreamWatcher) -> None:
        await watcher.wait_for_turns(patience=_TIMEOUT_SECONDS)
        found, unstarted = await interrupted_turn.check_interrupted_session(self._cluster, session_id, watcher.seen)
        self._tally.found.add(found)
        self._tally.unstarted += unstarted
        began = time.monotonic()

        async def all_gone() -> bool:
            return not process_kills.list_processes(self._cluster, session_id)

        if not await wait_until(all_gone, LIMIT):
            self._tally.found.record_faults(
                f"still alive {LIMIT:.0f} s after its turn: {process_kills.list_processes(self._cluster, session_id)}"
            )
        self._tally.gone_after = max(self._tally.gone_after, time.monotonic() - began)
