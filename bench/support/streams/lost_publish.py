"""Kills a worker between commit and publish, and measures how late the last event reaches a listening client."""

import asyncio
import random
import time
from typing import Final

import asyncpg

from bench.prove.figure import require
from bench.support.clients import Client
from bench.support.cluster import Cluster
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, reply, text, tool

_POINT: Final = "before_publish"
_CALLS: Final = 12
_PATIENCE: Final = 60.0
_SCRIPT: Final = replies(reply(tool("bash", {"command": "sleep 0.02; echo {n}"}), repeat=_CALLS), [text("done")])
_LAST: Final = "select seq, created_at from events where session_id = $1 order by seq desc limit 1"


async def lost_publishes(cluster: Cluster, client: Client, database: asyncpg.Connection, count: int) -> list[float]:
    """Returns the seconds from the last commit to its arrival at the client, for each kill."""
    await cluster.model.install("lost", _SCRIPT)
    return [await _one(cluster, client, database) for _ in range(count)]


async def _one(cluster: Cluster, client: Client, database: asyncpg.Connection) -> float:
    session_id = await client.session()
    arrivals: dict[int, float] = {}

    async def listen() -> None:
        async with client.stream(session_id, last_event_id="0") as stream:
            async for event in stream:
                arrivals[int(stream.last_id)] = time.time()
                if event["type"] == events.STATUS_IDLE:
                    return

    async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as group:
        listening = group.create_task(listen())
        await client.send_text(session_id, "[[script:lost]]")
        seen = random.randint(1, _CALLS * 2)
        begun = await wait_until(lambda: _has(arrivals, seen), _PATIENCE)
        require(holds=begun, otherwise=f"position {seen} never arrived")
        (cluster.failpoints / _POINT).write_text("kill")
        killed = await wait_until(lambda: _is_dead(cluster), _PATIENCE)
        require(holds=killed, otherwise="the worker never reached the failpoint between commit and publish")
        last = await database.fetchrow(_LAST, session_id)
        assert last is not None
        arrived = await wait_until(lambda: _has(arrivals, last["seq"]), _PATIENCE)
        require(holds=arrived, otherwise=f"position {last['seq']} never arrived")
        await cluster.restart_worker(0)
        await listening
    (cluster.failpoints / f"{_POINT}.hit").unlink()
    require(holds=sorted(arrivals) == [*arrivals] == list(range(1, len(arrivals) + 1)), otherwise=f"{[*arrivals]}")
    committed: float = last["created_at"].timestamp()
    return arrivals[last["seq"]] - committed


async def _is_dead(cluster: Cluster) -> bool:
    return not cluster.workers[0].is_running


async def _has(arrivals: dict[int, float], seq: int) -> bool:
    return seq in arrivals
