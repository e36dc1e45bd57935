"""Restarting workers during running turns fails no turn, runs no tool twice and leaves no outcome unknown.

In each round, every session runs a turn of slow tool calls. While all of them are in the middle of a call, both workers
receive SIGTERM and are started again, one after the other. Every call writes its name into a file, which the last call
prints.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support.claude.scenarios import HARNESSES, tool_namer
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.restarts import slow_turns

_SCRIPT: Final = "rolling"
_SECONDS: Final = 1.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds, turns, calls = (1, 2, 12) if quick else (10, 10, 20)
    found: list[dict[str, Any]] = []
    exits: list[float] = []
    async with open_cluster(workers=2) as cluster, Client(cluster) as client:
        for harness in HARNESSES:
            await cluster.model.install(_SCRIPT, slow_turns.build_script(tool_namer(harness)("bash"), calls, _SECONDS))
            agent = await client.agent(extra_body={"harness": harness})
            for number in range(rounds):
                found += [
                    slow_turns.summarise_turn(*each, calls)
                    for each in await _run_round(cluster, client, agent, turns, exits)
                ]
                print(f"  {harness}, round {number + 1}: {len(found)} turns", flush=True)
    return _judge(found, exits, rounds, calls)


async def _run_round(
    cluster: Cluster, client: Client, agent: str, turns: int, exits: list[float]
) -> Sequence[tuple[list[Event], dict[str, Any]]]:
    sessions = [await client.session(agent) for _ in range(turns)]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(slow_turns.run_turn(client, session_id, _SCRIPT)) for session_id in sessions]
        await slow_turns.wait_until_all_run_a_tool(client, sessions)
        exits += [await slow_turns.restart_gracefully(cluster, index) for index in range(2)]
    found = []
    for task, session_id in zip(running, sessions, strict=True):
        (turn,) = await client.list_turns(session_id)
        found.append((await task, turn))
    return found


def _judge(found: list[dict[str, Any]], exits: list[float], rounds: int, calls: int) -> Figure:
    failed = sum(turn["status"] != "completed" for turn in found)
    sums = {name: sum(turn[name] for turn in found) for name in slow_turns.COUNTS}
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
