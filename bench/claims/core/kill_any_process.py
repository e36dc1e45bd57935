"""Kill any process at any time: no turn is lost, no tool runs twice, no event is missing."""

import random
import secrets
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.crash import interrupted_turn
from bench.support.crash.api_kills import kill_api
from bench.support.crash.cell import Cell
from bench.support.crash.store_restarts import restart_postgres, restart_temporal, wipe_redis
from bench.support.crash.worker_kills import kill_workers
from footplate.failpoints import POINTS

SETTINGS: Final = {
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "3",
    "FOOTPLATE_LEASE": "1.5",
    "FOOTPLATE_RETRY_WAIT": "0.2",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    # Here a turn may be hit by many kills in a row, which must not count as its own failures.
    "FOOTPLATE_MAX_ATTEMPTS": "1000",
}
_MAX_RETRIES: Final = 40
"""The SDK's own retries: enough for an API process that needs seconds to restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    measured: int
    at_random_times: int
    at_points: Sequence[str]
    apis: int
    temporal: int
    postgres: int
    redis: int


FULL: Final = Size(
    measured=5,
    at_random_times=100,
    at_points=[point for point in POINTS for _ in range(10)],
    apis=50,
    temporal=10,
    postgres=10,
    redis=20,
)
QUICK: Final = Size(measured=1, at_random_times=1, at_points=["in_tool"], apis=1, temporal=1, postgres=1, redis=1)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_at(QUICK if quick else FULL)


async def prove_at(
    size: Size, backend: str = environment_backends.default_backend(), *, pooled_connections: int = 0
) -> Figure:
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    async with (
        environment_backends.backend_settings(backend) as settings,
        open_cluster(
            apis=1, workers=2, environment={**SETTINGS, **settings}, pooled_connections=pooled_connections
        ) as cluster,
        Client(cluster, max_retries=_MAX_RETRIES) as client,
    ):
        await cluster.model.install(interrupted_turn.SCRIPT_NAME, interrupted_turn.build_script())
        cell = Cell(cluster, client, await client.agent())
        await cell.measure_turn_time(size.measured)
        await _break_everything(cell, size, random.Random(seed))
    return _figure(cell, backend)


async def _break_everything(cell: Cell, size: Size, rng: random.Random) -> None:
    killing = kill_workers(cell, anywhere=size.at_random_times, at_points=size.at_points, chance=rng)
    await _run_timed("SIGKILL of the busy worker", killing)
    if size.apis:
        await _run_timed("SIGKILL of the API", kill_api(cell, kills=size.apis, chance=rng))
    await _run_timed("restart of Temporal", restart_temporal(cell, times=size.temporal, chance=rng))
    await _run_timed("restart of PostgreSQL", restart_postgres(cell, times=size.postgres, chance=rng))
    await _run_timed("FLUSHALL and restart of Redis", wipe_redis(cell, times=size.redis, chance=rng))


async def _run_timed(title: str, step: Awaitable[None]) -> None:
    began = time.monotonic()
    await step
    print(f"  {title}: {time.monotonic() - began:.0f} s", flush=True)


def _figure(cell: Cell, backend: str) -> Figure:
    found, tally = cell.findings, cell.findings.tallies
    breaks = sum(
        tally[name] for name in ("worker_kills", "api_kills", "temporal_restarts", "postgres_restarts", "redis_wipes")
    )
    headline = f"{breaks} kills and restarts: all {found.turns:,} turns ended, none of {found.calls:,} calls ran twice"
    summary = (
        f"in `{backend}`: "
        f"{tally['worker_kills']} SIGKILLs of the busy worker ({tally['worker_kills_anywhere']} at random times of a "
        f"turn of {cell.turn_time:.1f} s, {tally['worker_kills_at_failpoints']} at {len(POINTS)} failpoints), "
        f"{tally['api_kills']} of the API ({tally['messages']} messages, {tally['posts_retried']} retries), "
        f"{tally['temporal_restarts']} restarts of Temporal, {tally['postgres_restarts']} of PostgreSQL, "
        f"{tally['redis_wipes']} FLUSHALLs and restarts of Redis: "
        f"all {found.turns} turns ended, in {found.attempts} attempts; none of {found.calls} calls ran twice, and the "
        f"{tally['calls_in_flight']} that were running have an unknown outcome; "
        f"{found.positions} positions without gap, duplicate or loss; last process gone after "
        f"{tally['last_process_gone_after_ms'] / 1000:.2f} s"
    )
    if found.faults:
        headline = f"{breaks} kills and restarts: {len(found.faults)} faults"
        summary = f"{len(found.faults)} faults, the first: {found.faults[0]}"
    return Figure(
        headline=headline, summary=summary, holds=not found.faults, details={"faults": list(found.faults), **tally}
    )
