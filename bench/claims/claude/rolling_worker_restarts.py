"""Restarting workers during running turns fails no turn, runs no tool twice and leaves no outcome unknown.

In each round, every session runs a turn of slow tool calls. While all of them are in the middle of a call, both workers
receive SIGTERM and are started again, one after the other. Every call writes its name into a file, which the last call
prints.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support.claude.scenarios import HARNESSES, tool_namer
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.sessions import events as ev
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, replies, text, tool

_SCRIPT: Final = "rolling"
_SECONDS: Final = 1.0
_TIMEOUT_SECONDS: Final = 180.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds, turns, calls = (1, 2, 12) if quick else (10, 10, 20)
    found: list[dict[str, Any]] = []
    exits: list[float] = []
    async with open_cluster(workers=2) as cluster, Client(cluster) as client:
        for harness in HARNESSES:
            await cluster.model.install(_SCRIPT, _script(tool_namer(harness)("bash"), calls))
            agent = await client.agent(extra_body={"harness": harness})
            for number in range(rounds):
                found += [
                    _summarise_turn(*each, calls) for each in await _run_round(cluster, client, agent, turns, exits)
                ]
                print(f"  {harness}, round {number + 1}: {len(found)} turns", flush=True)
    return _judge(found, exits, rounds, calls)


def _script(bash: str, calls: int) -> Replies:
    calls_made = [[tool(bash, {"command": f"echo call-{n} >> ran; sleep {_SECONDS}"})] for n in range(calls)]
    return replies(*calls_made, [tool(bash, {"command": "cat ran"})], [text("Done.")])


async def _run_round(
    cluster: Cluster, client: Client, agent: str, turns: int, exits: list[float]
) -> Sequence[tuple[list[Event], dict[str, Any]]]:
    sessions = [await client.session(agent) for _ in range(turns)]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_run_turn(client, session_id)) for session_id in sessions]
        await _wait_until_all_run_a_tool(client, sessions)
        for index in range(2):
            began = time.monotonic()
            await cluster.kill_worker(index, signal.SIGTERM)
            await cluster.workers[index].wait()
            exits.append(time.monotonic() - began)
            await cluster.restart_worker(index)
    found = []
    for task, session_id in zip(running, sessions, strict=True):
        (turn,) = await client.list_turns(session_id)
        found.append((await task, turn))
    return found


async def _run_turn(client: Client, session_id: str) -> list[Event]:
    return await client.run_turn(session_id, f"Go. [[script:{_SCRIPT}]]", patience=_TIMEOUT_SECONDS)


async def _wait_until_all_run_a_tool(client: Client, sessions: Sequence[str]) -> None:
    async def all_run_a_tool() -> bool:
        return all([await client.events(each, types=[ev.AGENT_TOOL_USE]) for each in sessions])

    require(holds=await wait_until(all_run_a_tool, _TIMEOUT_SECONDS), otherwise="not every turn reached its first tool")


def _summarise_turn(received: list[Event], turn: dict[str, Any], calls: int) -> dict[str, Any]:
    results = [event for event in received if event["type"] == ev.AGENT_TOOL_RESULT]
    require(holds=bool(results), otherwise=f"a turn without results: {turn}")
    ran = Counter(results[-1]["content"][0]["text"].split())
    return {
        "status": turn["status"],
        "attempts": turn["attempt"],
        "twice": sum(count > 1 for count in ran.values()),
        "missing": calls - sum(f"call-{n}" in ran for n in range(calls)),
        "unknown": sum("unknown" in event["content"][0]["text"] for event in results),
        "errors": sum(event["type"] == ev.SESSION_ERROR for event in received),
    }


def _judge(found: list[dict[str, Any]], exits: list[float], rounds: int, calls: int) -> Figure:
    failed = sum(turn["status"] != "completed" for turn in found)
    sums = {name: sum(turn[name] for turn in found) for name in ("twice", "missing", "unknown", "errors")}
    handovers = sum(turn["attempts"] - 1 for turn in found)
    harnesses = ", ".join(HARNESSES)
    return Figure(
        headline=f"{len(found)} turns through {rounds} rounds of restarts: {failed} failed, {sums['twice']} tools ran "
        "twice",
        summary=f"{rounds} rounds of restarting two workers during {len(found)} turns ({harnesses}), each in the "
        f"middle of a call: {failed} failed, {handovers} handovers; of {len(found) * (calls + 1)} calls "
        f"{sums['twice']} "
        f"ran twice, {sums['missing']} did not run, {sums['unknown']} have an unknown outcome; {sums['errors']} errors "
        f"reported; a worker exited at most {max(exits):.1f} s after SIGTERM",
        holds=failed == 0 and not any(sums.values()) and handovers >= len(found),
        details={"seconds_to_stop": [round(each, 2) for each in exits], "handed_over": handovers},
    )
