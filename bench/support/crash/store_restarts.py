"""Restarts Temporal, PostgreSQL and Redis, and runs FLUSHALL, while turns run and messages arrive."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from redis.asyncio import Redis as RedisClient

from bench.support.crash.cell import Cell
from footplate.stack.services.service import Service

_TURNS: Final = 3


async def restart_temporal(cell: Cell, *, times: int, chance: random.Random) -> None:
    await _run_rounds(cell, "temporal_restarts", times, chance, lambda n: _restart(cell.cluster.stack.temporal, n))


async def restart_postgres(cell: Cell, *, times: int, chance: random.Random) -> None:
    await _run_rounds(cell, "postgres_restarts", times, chance, lambda n: _restart(cell.cluster.stack.postgres, n))


async def wipe_redis(cell: Cell, *, times: int, chance: random.Random) -> None:
    """Runs FLUSHALL, and later restarts Redis, which loses everything again."""

    async def wipe(number: int) -> None:
        async with RedisClient.from_url(cell.cluster.settings.redis_url) as client:
            await client.flushall()
        await asyncio.sleep(chance.random() * cell.turn_time / 2)
        await _restart(cell.cluster.stack.redis, number)

    await _run_rounds(cell, "redis_wipes", times, chance, wipe)


async def _restart(service: Service | None, number: int) -> None:
    """Restarts the service, every other time with SIGKILL."""
    assert service is not None
    if number % 2:
        await service.kill()
        await service.start()
    else:
        await service.restart()


async def _run_rounds(
    cell: Cell, name: str, times: int, chance: random.Random, break_it: Callable[[int], Awaitable[None]]
) -> None:
    """Breaks a service in each round while some turns run, and starts one more turn meanwhile."""
    for number in range(times):
        async with asyncio.TaskGroup() as group:
            for _ in range(_TURNS):
                group.create_task(cell.run_turn())
            await asyncio.sleep(chance.random() * cell.turn_time)
            group.create_task(cell.run_turn())
            await break_it(number)
    cell.findings.tallies[name] += times
