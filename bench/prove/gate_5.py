"""A session that waits for a person costs rows, and nothing of a worker: no process, no place, no memory.

Sessions of both harnesses park, each with a call that a person is asked about, on a worker that has room for two turns
at a time. Then another turn runs at once, and some of those that waited are answered and go on.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx2
import psutil

from bench.prove.clients import TOOLSET, Client, raw_client
from bench.prove.cluster import Cluster, open_cluster
from bench.prove.figure import Figure, require
from footplate.domain import events
from footplate.environments.reaper import leases
from footplate.stack.leftovers import wait_until
from footplate.testing import replies, text, tool

_SETTINGS: Final = {
    "FOOTPLATE_MAX_TURNS": "2",
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_LINGER": "2",
}
_MOST: Final = 1.10
_MIB: Final = 1 << 20
_ANSWERED: Final = 10
_PATIENCE: Final = 120.0
_SETTLES_WITHIN: Final = 60.0
_HARNESSES: Final = {"native": "bash", "claude": "Bash"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    first: int
    """Sessions after which the worker is looked at for the first time."""
    all: int
    claude: int
    """Every so many one is of Claude Code, which takes a second to start."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    size = _Size(first=2, all=4, claude=2) if quick else _Size(first=50, all=1000, claude=10)
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
        parked = [await _park(client, agents, number, size) for number in range(size.first)]
        early = await _look(cluster)
        for number in range(size.first, size.all):
            parked.append(await _park(client, agents, number, size))
            if number % 100 == 99:
                print(f"  {number + 1} sessions wait", flush=True)
        late = await _look(cluster)
        await cluster.model.install("plain", replies([text("At once.")]))
        await client.run_turn(await client.session(), "Go. [[script:plain]]", patience=_PATIENCE)
        step = max(1, len(parked) // _ANSWERED)
        answered = [await _answer(client, http, session_id) for session_id in parked[::step]]
    growth = late.rss / early.rss
    return Figure(
        text=f"{size.all} sessions wait, `native` and `claude`: the worker has {early.rss / _MIB:.0f} MiB with "
        f"{size.first} of them and {late.rss / _MIB:.0f} with all: {growth:.3f} (at most {_MOST:.2f}); processes "
        f"{early.processes} and {late.processes}, leases {early.leases} and {late.leases}; with room for 2 turns "
        f"another one ran at once, and {len(answered)} that were answered went on",
        holds=late.processes <= early.processes and not late.leases and (growth <= _MOST or quick),
        details={"growth": growth, "early": early.rss, "late": late.rss},
    )


async def _park(client: Client, agents: dict[str, str], number: int, size: _Size) -> str:
    harness = "claude" if number % size.claude == size.claude - 1 else "native"
    session_id = await client.session(agents[harness])
    told = await client.run_turn(session_id, f"Go. [[script:{harness}]]", patience=_PATIENCE)
    reason = told[-1]["stop_reason"]["type"]
    require(holds=reason == "requires_action", otherwise=f"{harness}: a turn ended with {reason}")
    return session_id


async def _answer(client: Client, http: httpx2.AsyncClient, session_id: str) -> str:
    waiting = (await http.get("/v1/approvals", params={"session_id": session_id})).json()["data"]
    require(holds=len(waiting) == 1, otherwise=f"{session_id} waits for {len(waiting)} answers")
    async with client.stream(session_id) as stream:
        word = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": waiting[0]["id"], "result": "allow"}
        await client.send(session_id, word)
        told = await stream.until_idle(patience=_PATIENCE)
    require(holds=told[-1]["stop_reason"]["type"] == "end_turn", otherwise=f"{session_id} did not go on: {told[-1]}")
    return session_id


@dataclass(frozen=True, slots=True)
class _Seen:
    rss: int
    processes: int
    leases: int


async def _look(cluster: Cluster) -> _Seen:
    pid = cluster.workers[0].pid
    assert pid is not None
    worker = psutil.Process(pid)
    held = cluster.directory / "data" / leases.DIRECTORY

    def count() -> int:
        return len([*held.iterdir()]) if held.exists() else 0

    async def calm() -> bool:
        return not count()

    await wait_until(calm, _SETTLES_WITHIN)
    await asyncio.sleep(3)  # open workflows of sessions that wait end by themselves
    return _Seen(worker.memory_info().rss, len(worker.children(recursive=True)), count())
