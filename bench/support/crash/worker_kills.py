"""Kills the busy worker at times spread evenly over a turn, and at every named failpoint."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from bench.support.crash import interrupted_turn
from bench.support.crash.cell import Cell
from bench.support.crash.findings import print_histogram
from bench.support.crash.surviving_processes import LIMIT, ProcessTracker
from bench.support.crash.worker_deaths import WorkerDeath, WorkerDeaths
from footplate.failpoints import POINTS

_BINS: Final = 10
_MAX_RECOVERING: Final = 8
"""The maximum number of turns that recover while the next worker is killed."""
_TRIES: Final = 8
_MAX_MISSES: Final = 25
"""How many turns in a row may end before their kill. Each makes the next kill earlier."""
_MIN_CALLS: Final = 3
"""Calls that a turn must have started before its speed is estimated."""
_WEIGHT: Final = 0.2


@dataclass(slots=True)
class _Tally:
    by_time: Counter[str] = field(default_factory=Counter)
    by_progress: Counter[str] = field(default_factory=Counter)
    by_point: Counter[str] = field(default_factory=Counter)
    deaths: list[WorkerDeath] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    """Calls whose result reports an unknown outcome."""


async def kill_workers(cell: Cell, *, anywhere: int, at_points: Sequence[str], chance: random.Random) -> None:
    """Kills workers. `anywhere`: the number of kills at random times; `at_points`: failpoints of further kills."""
    # One kill in each of equal parts of the turn, so that the histogram is flat and not just probably flat.
    shares = [(number + chance.random()) / anywhere for number in range(anywhere)]
    plan: list[str | float] = [*chance.sample(at_points, len(at_points)), *chance.sample(shares, anywhere)]
    tally = _Tally()
    async with (
        asyncpg.create_pool(cell.cluster.settings.database_url, min_size=1, max_size=4) as database,
        ProcessTracker(cell.cluster) as survivors,
        asyncio.TaskGroup() as group,
    ):
        rounds = _KillRounds(cell, WorkerDeaths(cell.cluster, survivors, database), tally, group, chance)
        for number, kill in enumerate(plan, start=1):
            await (rounds.kill_at_failpoint(kill) if isinstance(kill, str) else rounds.kill_at_time(kill))
            if number % 20 == 0:
                print(f"  {number} of {len(plan)} kills", flush=True)
    _conclude(cell, tally)


class _KillRounds:
    """Makes one kill after the other, while earlier turns recover."""

    def __init__(
        self, cell: Cell, workers: WorkerDeaths, tally: _Tally, group: asyncio.TaskGroup, chance: random.Random
    ) -> None:
        self._cell = cell
        self._workers = workers
        self._tally = tally
        self._group = group
        self._chance = chance
        self._recovering = asyncio.Semaphore(_MAX_RECOVERING)
        self._turn_time = cell.turn_time
        self._restarts: set[asyncio.Task[None]] = set()

    async def kill_at_time(self, share: float) -> None:
        """Kills the worker of a new turn after the share `moment`, from 0 to 1, of a turn's time since its claim."""
        for _ in range(_MAX_MISSES):
            session_id, _ended = await self._start_turn()
            await self._workers.wait_claimed(session_id)
            waited = share * self._turn_time
            await asyncio.sleep(waited)
            number = await self._workers.find_worker(session_id)
            if number is None:  # The turn was faster than measured: try the same share of another one.
                self._turn_time *= 1 - _WEIGHT / 2
                continue
            progress = len(interrupted_turn.read_lines(self._cell.cluster, session_id))
            self._adjust_turn_time(waited, progress)
            death = await self._workers.kill_worker(number)
            self._record_death(number, death)
            if death.sessions:
                self._tally.by_time[f"{int(share * _BINS) / _BINS:.1f} of the turn"] += 1
                self._tally.by_progress[f"{progress:2d} calls begun"] += 1
                return
        self._cell.findings.record_faults(f"no turn was still running at {share:.2f} of its measured time")

    async def kill_at_failpoint(self, point: str) -> None:
        """Arms the failpoint at a random time of a turn, and starts turns until one reaches it."""
        # A worker that is just starting must not die: its start would count as failed.
        await asyncio.gather(*self._restarts)
        armed, hit = (self._cell.cluster.failpoints / name for name in (point, f"{point}.hit"))
        hit.unlink(missing_ok=True)
        for number in range(_TRIES):
            session_id, ended = await self._start_turn()
            if number == 0:
                await self._workers.wait_claimed(session_id)
                await asyncio.sleep(self._chance.random() * 0.8 * self._turn_time)
                armed.write_text("kill")
            dying = asyncio.create_task(self._workers.wait_for_failpoint(patience=60))
            await asyncio.wait({dying, ended}, return_when=asyncio.FIRST_COMPLETED)
            if hit.exists() and (dead := await dying):
                self._record_death(*dead)
                self._tally.by_point[point] += 1
                return
            dying.cancel()
        armed.unlink(missing_ok=True)
        self._cell.findings.record_faults(f"no turn reached {point}")

    async def _start_turn(self) -> tuple[str, asyncio.Task[None]]:
        await self._recovering.acquire()
        session_id, turn = await self._cell.start_turn(self._group)

        async def ended() -> None:
            try:
                self._tally.unknown |= (await turn).unknown
            finally:
                self._recovering.release()

        return session_id, self._group.create_task(ended())

    def _adjust_turn_time(self, seconds: float, progress: int) -> None:
        """Adjusts the time over which kills are spread, because turns are slower while others recover."""
        if progress >= _MIN_CALLS:
            now = seconds * interrupted_turn.CALLS / progress
            self._turn_time += _WEIGHT * (now - self._turn_time)

    def _record_death(self, number: int, death: WorkerDeath) -> None:
        task = self._group.create_task(self._cell.cluster.restart_worker(number))
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)
        self._tally.deaths.append(death)
        if death.aftermath.alive:
            self._cell.findings.record_faults(f"alive {LIMIT:.0f} s after its worker: {death.aftermath.alive}")


def _conclude(cell: Cell, tally: _Tally) -> None:
    print_histogram("kills by the time since the turn's claim", Counter(dict(sorted(tally.by_time.items()))))
    print_histogram("kills by the progress of the turn", Counter(dict(sorted(tally.by_progress.items()))))
    print_histogram("kills at failpoints", Counter({point: tally.by_point[point] for point in POINTS}))
    in_flight = {call for death in tally.deaths for call in death.in_flight}
    if silent := in_flight - tally.unknown:
        cell.findings.record_faults(f"in flight when their worker died, and not reported as unknown: {sorted(silent)}")
    cell.findings.tallies.update(
        worker_kills=len(tally.deaths),
        worker_kills_anywhere=tally.by_time.total(),
        worker_kills_at_failpoints=tally.by_point.total(),
        turns_hit=sum(death.sessions for death in tally.deaths),
        calls_in_flight=len(in_flight),
        calls_unknown_without_a_kill=len(tally.unknown - in_flight),
        processes_orphaned=sum(death.aftermath.processes for death in tally.deaths),
        last_process_gone_after_ms=round(1000 * max((d.aftermath.seconds for d in tally.deaths), default=0)),
    )
