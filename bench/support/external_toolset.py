"""Runs turns that call the toolset of the separate package, while workers are killed, and counts the calls.

The tools write the ID of each call to a file. The log and the file then show how often each call was made. With
Claude Code, a call that a lost worker had not started is not in the log; the model's next request tells it so.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from footplate.harness.claude.recovery import NOT_STARTED
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, replies, reply, text, tool

TOOLSET: Final = "ledger"
HARNESSES: Final = ("native", "claude")
_SCRIPT: Final = "ledger-calls"
_UNKNOWN: Final = "outcome of this call is unknown"
_PATIENCE: Final = 600.0
_RUNNING: Final = frozenset({"running", "pending"})


@dataclass(slots=True)
class ToolCallFindings:
    calls: Counter[str] = field(default_factory=Counter)
    """The calls in the log, by harness."""
    unknown: int = 0
    """Calls whose result says that the outcome is unknown."""
    unknown_made: int = 0
    """Those of them that the tool received."""
    not_started: int = 0
    """Calls that the model requested and that a lost worker had not started."""
    kills: int = 0
    faults: list[str] = field(default_factory=list)


def ledger_path(cluster: Cluster) -> Path:
    return cluster.directory / "ledger"


async def create_agent(client: Client, cluster: Cluster, harness: str, policy: str = "always_allow") -> str:
    toolset = {
        "name": TOOLSET,
        "settings": {"ledger": str(ledger_path(cluster))},
        "default_config": {"permission_policy": {"type": policy}},
    }
    extensions = {"harness": harness, "server_toolsets": [toolset], "limits": {"max_retries": 100}}
    return await client.agent(tools=[], extra_body=extensions)


async def wait_for_turn(client: Client, session_id: str) -> list[Event]:
    """Waits until the turns of the session have ended or wait for a person. Returns its events."""

    async def has_ended() -> bool:
        turns = await client.list_turns(session_id)
        return bool(turns) and all(turn["status"] not in _RUNNING for turn in turns)

    if not await wait_until(has_ended, _PATIENCE):
        raise TimeoutError(f"the turn of {session_id} did not end")
    return await client.events(session_id)


def build_script(calls: int) -> Replies:
    """Calls an async function and one that blocks, in turns, and both at once."""
    one = tool(f"mcp__{TOOLSET}__note", {"line": "{n}", "seconds": 0.2})
    other = tool(f"mcp__{TOOLSET}__slow_note", {"line": "{n}", "seconds": 0.2})
    return replies(reply(one, other, repeat=calls // 2), [text("All lines are there.")])


async def call_under_kills(
    cluster: Cluster, *, sessions: int, calls_per_session: int, concurrent: int, seed: int
) -> ToolCallFindings:
    """Runs the sessions, with both harnesses, and kills a random worker again and again until all have ended."""
    findings, chance = ToolCallFindings(), random.Random(seed)
    slots = asyncio.Semaphore(concurrent)
    logs: list[tuple[str, int, list[Event]]] = []

    async def run_session(number: int) -> None:
        async with slots:
            harness, script = HARNESSES[number % len(HARNESSES)], f"{_SCRIPT}-{number}"
            await cluster.model.install(script, build_script(calls_per_session))
            session_id = await client.session(agents[harness], title=f"{number}")
            await client.send_text(session_id, f"Note. [[script:{script}]]")
            events = await wait_for_turn(client, session_id)
            requests = await cluster.model.requests(script)
            logs.append((harness, json.dumps(requests[-1]["body"]).count(NOT_STARTED), events))

    async with Client(cluster) as client, asyncio.TaskGroup() as group:
        agents = {harness: await create_agent(client, cluster, harness) for harness in HARNESSES}
        running = [group.create_task(run_session(number)) for number in range(sessions)]
        while not all(task.done() for task in running):
            await asyncio.sleep(chance.uniform(0.5, 4.0))
            number = chance.randrange(len(cluster.workers))
            await cluster.kill_worker(number)
            findings.kills += 1
            await cluster.restart_worker(number)
            if findings.kills % 20 == 0:
                print(f"  {findings.kills} kills, {len(logs)} of {sessions} turns ended", flush=True)
    path = ledger_path(cluster)
    made = Counter(path.read_text().split() if path.exists() else [])
    for harness, not_started, events in logs:
        findings.not_started += not_started
        _check_session(findings, harness, events, calls_per_session - not_started, made)
    if unlogged := set(made) - {use["id"] for _, _, events in logs for use in _uses(events)}:
        findings.faults.append(f"{len(unlogged)} calls that are not in the log were made")
    return findings


def _check_session(
    findings: ToolCallFindings, harness: str, events: Sequence[Event], expected: int, made: Counter[str]
) -> None:
    uses = _uses(events)
    results = [event for event in events if event["type"] == "agent.mcp_tool_result"]
    findings.calls[harness] += len(uses)
    if len(uses) != expected:
        findings.faults.append(f"{harness}: a turn has {len(uses)} calls instead of {expected}")
    for use in uses:
        texts = [str(result["content"]) for result in results if result["mcp_tool_use_id"] == use["id"]]
        times = made[use["id"]]
        is_unknown = any(_UNKNOWN in one for one in texts)
        findings.unknown += is_unknown
        findings.unknown_made += is_unknown and times > 0
        if times > 1:
            findings.faults.append(f"{harness}: the call {use['id']} was made {times} times")
        if len(texts) != 1:
            findings.faults.append(f"{harness}: the call {use['id']} has {len(texts)} results")
        elif not is_unknown and (times == 0 or "Noted" not in texts[0]):
            findings.faults.append(
                f"{harness}: the call {use['id']} was made {times} times and has the result {texts[0]}"
            )


def _uses(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["type"] == "agent.mcp_tool_use"]
