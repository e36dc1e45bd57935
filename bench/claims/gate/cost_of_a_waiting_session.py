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
from footplate.domain.sessions import events
from footplate.environments import leases
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_MAX_TURNS: Final = 2
_SETTINGS: Final = {
    "FOOTPLATE_MAX_TURNS": str(_MAX_TURNS),
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_LINGER": "2",
}
_MAX_GROWTH: Final = 1.10
_MIB: Final = 1 << 20
_APPROVED_SESSIONS: Final = 10
_STEP: Final = 100
_TIMEOUT_SECONDS: Final = 120.0
_SETTLE_SECONDS: Final = 60.0
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
        early = await _count_resources(cluster)
        while len(parked) < size.all:
            parked += await _park_all(client, agents, min(_STEP, size.all - len(parked)))
            print(f"  {len(parked)} sessions waiting", flush=True)
        late = await _count_resources(cluster)
        await cluster.model.install("plain", replies([text("At once.")]))
        await client.run_turn(await client.session(), "Go. [[script:plain]]", patience=_TIMEOUT_SECONDS)
        step = max(1, len(parked) // _APPROVED_SESSIONS)
        approved = [await _approve_and_continue(client, http, session_id) for session_id in parked[::step]]
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
    elif growth["api"] > _MAX_GROWTH and not quick:
        headline = f"{size.all:,} waiting sessions: API memory {growth['api']:.3f} times (limit {_MAX_GROWTH:.2f})"
    return Figure(
        headline=headline,
        summary=f"{size.all} waiting sessions, half of them of `native` and half of `claude`: {memory}, limit "
        f"{_MAX_GROWTH:.2f}; processes {early.processes} and {late.processes}, leases {early.leases} and "
        f"{late.leases}; with "
        f"room for {_MAX_TURNS} turns another one ran at once, and {len(approved)} that were approved continued",
        holds=late.processes <= early.processes and not late.leases and (max(growth.values()) <= _MAX_GROWTH or quick),
        details={
            "growth": {**growth},
            "early": {**early.rss},
            "late": {**late.rss},
            "harnesses": dict.fromkeys(_HARNESSES, size.all // len(_HARNESSES)),
        },
    )


async def _park_all(client: Client, agents: dict[str, str], number: int) -> list[str]:
    """Parks sessions, as many at a time as the worker has room for, alternating between the harnesses."""
    limit = asyncio.Semaphore(_MAX_TURNS)

    async def one(harness: str) -> str:
        async with limit:
            return await _park(client, agents, harness)

    return [*await asyncio.gather(*(one([*_HARNESSES][index % len(_HARNESSES)]) for index in range(number)))]


async def _park(client: Client, agents: dict[str, str], harness: str) -> str:
    session_id = await client.session(agents[harness])
    received = await client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=_TIMEOUT_SECONDS)
    reason = received[-1]["stop_reason"]["type"]
    require(holds=reason == "requires_action", otherwise=f"{harness}: a turn ended with {reason}")
    return session_id


async def _approve_and_continue(client: Client, http: httpx2.AsyncClient, session_id: str) -> str:
    waiting = (await http.get("/v1/approvals", params={"session_id": session_id})).json()["data"]
    require(holds=len(waiting) == 1, otherwise=f"{session_id} waits for {len(waiting)} decisions")
    async with client.stream(session_id) as stream:
        decision = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": waiting[0]["id"], "result": "allow"}
        await client.send(session_id, decision)
        received = await stream.until_idle(patience=_TIMEOUT_SECONDS)
    require(
        holds=received[-1]["stop_reason"]["type"] == "end_turn",
        otherwise=f"{session_id} did not continue: {received[-1]}",
    )
    return session_id


@dataclass(frozen=True, slots=True)
class _ResourceCount:
    rss: dict[str, int]
    """The memory of the worker and of the API."""
    processes: int
    leases: int


async def _count_resources(cluster: Cluster) -> _ResourceCount:
    lease_directory = cluster.directory / "data" / leases.LEASES_DIRECTORY

    def count_leases() -> int:
        return len([*lease_directory.iterdir()]) if lease_directory.exists() else 0

    async def has_no_leases() -> bool:
        return not count_leases()

    await wait_until(has_no_leases, _SETTLE_SECONDS)
    await asyncio.sleep(3)  # until the open workflows of waiting sessions have ended
    programs = {"worker": _find_process(cluster.workers[0].pid), "api": _find_process(cluster.apis[0].pid)}
    rss = {name: process.memory_info().rss for name, process in programs.items()}
    return _ResourceCount(rss, len(cluster.alive()), count_leases())


def _find_process(pid: int | None) -> psutil.Process:
    assert pid is not None
    return psutil.Process(pid)
