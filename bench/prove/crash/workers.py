"""SIGKILL of the busy worker: uniform over the time of a turn, and at every named failpoint."""

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from bench.prove.clients import Client
from bench.prove.cluster import Cluster
from bench.prove.crash import work
from bench.prove.crash.account import account
from bench.prove.crash.crew import Crew, Death
from bench.prove.crash.findings import Findings, histogram
from bench.prove.crash.survivors import LIMIT, Survivors
from bench.prove.crash.watcher import Watcher
from footplate.failpoints import POINTS

_BINS: Final = 10
_AT_ONCE: Final = 8
"""Turns that are being recovered while the next worker is killed, at most."""
_TRIES: Final = 4


@dataclass(slots=True)
class _Phase:
    cluster: Cluster
    client: Client
    agent: str
    crew: Crew
    chance: random.Random
    findings: Findings = field(default_factory=Findings)
    deaths: list[Death] = field(default_factory=list)
    by_time: Counter[str] = field(default_factory=Counter)
    by_point: Counter[str] = field(default_factory=Counter)
    by_progress: Counter[str] = field(default_factory=Counter)
    turn_time: float = 0.0
    in_flight: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


async def kill_workers(
    cluster: Cluster, client: Client, agent: str, *, anywhere: int, at_points: Sequence[str], chance: random.Random
) -> Findings:
    """`anywhere`: kills at a uniform moment; `at_points`: the failpoint of each further one."""
    async with asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database:
        async with Survivors(cluster) as survivors:
            crew = await Crew(cluster, survivors, database).learn()
            phase = _Phase(cluster, client, agent, crew, chance)
            phase.turn_time = await _undisturbed(phase, turns=2 if anywhere < _BINS else 5)
            print(f"  a turn of {work.CALLS} calls, undisturbed: {phase.turn_time:.2f} s", flush=True)
            await _kill_all(phase, anywhere, at_points)
    _conclude(phase)
    return phase.findings


async def _undisturbed(phase: _Phase, *, turns: int) -> float:
    times = []
    for _ in range(turns):
        session_id = await _victim(phase)
        took = "select extract(epoch from ended_at - started_at)::float from turns where session_id = $1"
        times.append(await phase.crew.database.fetchval(took, session_id))
    return statistics.median(times)


async def _victim(phase: _Phase, begun: "asyncio.Future[str] | None" = None) -> str:
    """A session whose one turn is watched to its end and then accounted for."""
    session_id = await phase.client.session(phase.agent)
    async with Watcher(phase.client, session_id) as watcher:
        await phase.client.send_text(session_id, work.PROMPT)
        if begun is not None:
            begun.set_result(session_id)
        await watcher.ended()
        found = await account(phase.cluster, session_id, watcher.seen)
    phase.findings.add(found)
    phase.unknown |= found.unknown
    return session_id


async def _kill_all(phase: _Phase, anywhere: int, at_points: Sequence[str]) -> None:
    """One kill after the other, in any order; what they broke recovers meanwhile."""
    # Each kind of moment once in a bin's width, so that the histogram is flat and not merely likely to be.
    offsets: list[float | str] = [(n + phase.chance.random()) / max(anywhere, 1) for n in range(anywhere)]
    plan = [*offsets, *at_points]
    phase.chance.shuffle(plan)
    room = asyncio.Semaphore(_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        rounds = _Rounds(phase, group, room)
        for moment in plan:
            if isinstance(moment, str):
                await rounds.at_point(moment)
            else:
                await rounds.at_time(moment)
            if len(phase.deaths) % 20 == 0:
                print(f"  {len(phase.deaths)} of {len(plan)} kills", flush=True)


class _Rounds:
    def __init__(self, phase: _Phase, group: asyncio.TaskGroup, room: asyncio.Semaphore) -> None:
        self._phase = phase
        self._group = group
        self._room = room
        self._restarts: set[asyncio.Task[None]] = set()

    async def at_time(self, moment: float) -> None:
        """Kill the worker of a new turn when `moment`, of 0 to 1, of a turn's time has passed since its claim."""
        phase = self._phase
        for _ in range(_TRIES):
            session_id, _ = await self._begin()
            await phase.crew.claimed(session_id)
            await asyncio.sleep(moment * phase.turn_time)
            number = await phase.crew.holder(session_id)
            if number is None:
                continue  # It was quicker than the measured turn: the same moment of another one.
            progress = len(work.lines(phase.cluster, session_id))
            if await self._after(number, await phase.crew.kill(number)):
                phase.by_time[f"{int(moment * _BINS) / _BINS:.1f} of the turn"] += 1
                phase.by_progress[f"{progress} calls begun"] += 1
                return
        phase.findings.fault(f"no turn was still running at {moment:.2f} of its measured time")

    async def at_point(self, point: str) -> None:
        """Arm it at some moment of a new turn; turns follow until one gets there."""
        phase = self._phase
        # A worker that is just starting must not be the one that dies: nobody would know its id.
        await asyncio.gather(*self._restarts)
        hit = phase.cluster.failpoints / f"{point}.hit"
        hit.unlink(missing_ok=True)
        delay: float | None = phase.chance.random() * 0.8 * phase.turn_time
        for _ in range(_TRIES):
            session_id, ended = await self._begin()
            if delay is not None:
                await phase.crew.claimed(session_id)
                await asyncio.sleep(delay)
                (phase.cluster.failpoints / point).write_text("kill")
                delay = None
            watching = asyncio.create_task(phase.crew.killed_itself(patience=60))
            await asyncio.wait({watching, ended}, return_when=asyncio.FIRST_COMPLETED)
            if hit.exists():
                dead = await watching
                assert dead is not None
                await self._after(*dead, busy=False)
                phase.by_point[point] += 1
                return
            watching.cancel()
        phase.findings.fault(f"no turn came to {point}")

    async def _begin(self) -> tuple[str, asyncio.Task[None]]:
        await self._room.acquire()
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def watched() -> None:
            try:
                await _victim(self._phase, begun)
            finally:
                self._room.release()

        task = self._group.create_task(watched())
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        return begun.result(), task

    async def _after(self, number: int, death: Death, *, busy: bool = True) -> bool:
        """Note it and start the worker again. False: it was not busy after all."""
        task = self._group.create_task(self._phase.crew.restart(number))
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)
        self._phase.in_flight |= death.in_flight
        if death.aftermath.alive:
            self._phase.findings.fault(f"alive {LIMIT:.0f} s after its worker: {death.aftermath.alive}")
        if busy and death.sessions == 0:
            return False
        self._phase.deaths.append(death)
        return True


def _conclude(phase: _Phase) -> None:
    findings, deaths = phase.findings, phase.deaths
    histogram("kills by the time since the turn's claim", Counter(dict(sorted(phase.by_time.items()))))
    histogram("kills by what the turn had done", _by_number(phase.by_progress))
    histogram("kills at failpoints", Counter({p: phase.by_point[p] for p in POINTS if phase.by_point[p]}))
    if silent := phase.in_flight - phase.unknown:
        findings.fault(f"in flight when their worker died, and no result says unknown: {sorted(silent)}")
    findings.tallies.update(
        kills=len(deaths),
        kills_anywhere=phase.by_time.total(),
        kills_at_failpoints=phase.by_point.total(),
        turns_hit=sum(death.sessions for death in deaths),
        calls_in_flight=len(phase.in_flight),
        unknown_without_a_kill=len(phase.unknown - phase.in_flight),
        processes_orphaned=sum(death.aftermath.started for death in deaths),
    )
    with suppress(ValueError):
        slowest = max(death.aftermath.seconds for death in deaths)
        findings.tallies["last_process_gone_after_ms"] = round(slowest * 1000)


def _by_number(counts: Counter[str]) -> Counter[str]:
    return Counter(dict(sorted(counts.items(), key=lambda item: int(item[0].split()[0]))))
