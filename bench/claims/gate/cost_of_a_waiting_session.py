"""A session that waits for an approval costs only database rows: no process, no worker slot, no memory.

Sessions of both harnesses park, each with a call that requires approval, on a worker that runs two turns at a time.
Then another turn runs at once, and some of the waiting calls are approved and continue.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx2
import psutil

from bench.prove.figure import Figure, require
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain import events
from footplate.environments.reaper import leases
from footplate.stack.leftovers import wait_until
from footplate.testing import replies, text, tool

_ROOM: Final = 2
_SETTINGS: Final = {
    "FOOTPLATE_MAX_TURNS": str(_ROOM),
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_LINGER": "2",
}
_MOST: Final = 1.10
_MIB: Final = 1 << 20
_ANSWERED: Final = 10
_STEP: Final = 100
_PATIENCE: Final = 120.0
_SETTLES_WITHIN: Final = 60.0
_HARNESSES: Final = {"native": "bash", "claude": "Bash"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    first: int
    """Sessions before the first count."""
    all: int


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    size = _Size(first=2, all=4) if quick else _Size(first=50, all=1000)
    async with (
        open_cluster(environment=_SETTINGS) as cluster,
        Client(cluster) as client,
        raw_client(cluster) as http,
    ):
        agents = {}
        for harness, name in _HARNESSES.items():
            await cluster.model.install(harness, replies([tool(name, {"command": "echo x >> lines"})], [text("Done.")]))
            asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
            agents[harness] = await client.agent(tools=[asking], extra_body={"harness": harness})
        parked = await _park_all(client, agents, size.first)
        early = await _look(cluster)
        while len(parked) < size.all:
            parked += await _park_all(client, agents, min(_STEP, size.all - len(parked)))
            print(f"  {len(parked)} sessions waiting", flush=True)
        late = await _look(cluster)
        await cluster.model.install("plain", replies([text("At once.")]))
        await client.run_turn(await client.session(), "Go. [[script:plain]]", patience=_PATIENCE)
        step = max(1, len(parked) // _ANSWERED)
        answered = [await _answer(client, http, session_id) for session_id in parked[::step]]
    growth = {name: late.rss[name] / early.rss[name] for name in early.rss}
    memory = ", ".join(
        f"the {name} has {early.rss[name] / _MIB:.0f} MiB with {size.first} of them and "
        f"{late.rss[name] / _MIB:.0f} with all ({growth[name]:.3f})"
        for name in growth
    )
    headline = (
        f"{size.all:,} waiting sessions: worker memory {growth['worker']:.3f} times, processes {early.processes} and "
        f"{late.processes}"
    )
    if late.leases:
        headline = f"{size.all:,} waiting sessions hold {late.leases} leases"
    elif growth["api"] > _MOST and not quick:
        headline = f"{size.all:,} waiting sessions: API memory {growth['api']:.3f} times (limit {_MOST:.2f})"
    return Figure(
        headline=headline,
        summary=f"{size.all} waiting sessions, half of them of `native` and half of `claude`: {memory}, limit "
        f"{_MOST:.2f}; processes {early.processes} and {late.processes}, leases {early.leases} and {late.leases}; with "
        f"room for {_ROOM} turns another one ran at once, and {len(answered)} that were approved continued",
        holds=late.processes <= early.processes and not late.leases and (max(growth.values()) <= _MOST or quick),
        details={
            "growth": {**growth},
            "early": {**early.rss},
            "late": {**late.rss},
            "harnesses": dict.fromkeys(_HARNESSES, size.all // len(_HARNESSES)),
        },
    )


async def _park_all(client: Client, agents: dict[str, str], number: int) -> list[str]:
    """Parks sessions, as many at a time as the worker has room for, alternating between the harnesses."""
    room = asyncio.Semaphore(_ROOM)

    async def one(harness: str) -> str:
        async with room:
            return await _park(client, agents, harness)

    return [*await asyncio.gather(*(one([*_HARNESSES][index % len(_HARNESSES)]) for index in range(number)))]


async def _park(client: Client, agents: dict[str, str], harness: str) -> str:
    session_id = await client.session(agents[harness])
    told = await client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=_PATIENCE)
    reason = told[-1]["stop_reason"]["type"]
    require(holds=reason == "requires_action", otherwise=f"{harness}: a turn ended with {reason}")
    return session_id


async def _answer(client: Client, http: httpx2.AsyncClient, session_id: str) -> str:
    waiting = (await http.get("/v1/approvals", params={"session_id": session_id})).json()["data"]
    require(holds=len(waiting) == 1, otherwise=f"{session_id} waits for {len(waiting)} decisions")
    async with client.stream(session_id) as stream:
        word = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": waiting[0]["id"], "result": "allow"}
        await client.send(session_id, word)
        told = await stream.until_idle(patience=_PATIENCE)
    require(holds=told[-1]["stop_reason"]["type"] == "end_turn", otherwise=f"{session_id} did not continue: {told[-1]}")
    return session_id


@dataclass(frozen=True, slots=True)
class _Seen:
    rss: dict[str, int]
    """The memory of the worker and of the API."""
    processes: int
    leases: int


async def _look(cluster: Cluster) -> _Seen:
    held = cluster.directory / "data" / leases.LEASES_DIRECTORY

    def count() -> int:
        return len([*held.iterdir()]) if held.exists() else 0

    async def calm() -> bool:
        return not count()

    await wait_until(calm, _SETTLES_WITHIN)
    await asyncio.sleep(3)  # until the open workflows of waiting sessions have ended
    programs = {"worker": _process(cluster.workers[0].pid), "api": _process(cluster.apis[0].pid)}
    rss = {name: process.memory_info().rss for name, process in programs.items()}
    return _Seen(rss, len(cluster.alive()), count())


def _process(pid: int | None) -> psutil.Process:
    assert pid is not None
    return psutil.Process(pid)
