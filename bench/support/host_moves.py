"""Moves sessions between two hosts: kills the worker of one at a random moment of their turns, and the other goes on.

Each call prints the state that it finds in the shell's directory, in a variable, in HOME and in the working tree, and
leaves a new value in all four. So a call has to find what the last call with a result has left.
"""

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.worker_hosts import create_worker_host
from footplate.stack import PythonService
from footplate.testing import replies, reply, text, tool

_CALLS: Final = 6
_TURN_SECONDS: Final = 4.0
_PATIENCE: Final = 300.0
_SCRIPT: Final = "moves"
_NEW: Final = ("workspace", "", "", "")
_PRINTED: Final = re.compile(r"found \[([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\] left (\S+)")
_COMMAND: Final = (
    'found="$(basename "$PWD")|$STATE|$(tail -qn1 ~/state 2>/dev/null)|$(tail -qn1 /workspace/state 2>/dev/null)"; '
    "export STATE=$(cat /proc/sys/kernel/random/uuid); mkdir /workspace/$STATE; cd /workspace/$STATE; touch kept; "
    'echo $STATE >> ~/state; echo $STATE >> /workspace/state; sleep 0.2; echo "found [$found] left $STATE"'
)


@dataclass(slots=True)
class HostMoveFindings:
    moves: int = 0
    """How often a session had to continue on the other host."""
    interrupted_turns: int = 0
    calls: int = 0
    faults: list[str] = field(default_factory=list)


async def move_sessions(
    cluster: Cluster, client: Client, *, sessions: int, moves: int, backend: str, seed: int
) -> HostMoveFindings:
    chance = random.Random(seed)
    call = tool("bash", {"command": _COMMAND})
    await cluster.model.install(_SCRIPT, replies(reply(call, repeat=_CALLS), [text("Moved.")]))
    agent = await client.agent(extra_body={"harness": "native"})
    session_ids = [await client.session(agent) for _ in range(sessions)]
    hosts = [create_worker_host(cluster, name, backend) for name in ("a", "b")]
    findings = HostMoveFindings()
    await hosts[0].start()
    try:
        for number in range(moves):
            findings.interrupted_turns += await _move_once(
                client, session_ids, hosts[number % 2], hosts[(number + 1) % 2], chance
            )
            findings.moves += sessions
            print(f"  {findings.moves} moves, {findings.interrupted_turns} of them within a turn", flush=True)
        for session_id in session_ids:
            check_session(await client.events(session_id), session_id, findings)
    finally:
        for host in hosts:
            await host.kill()
    return findings


async def _move_once(
    client: Client, session_ids: Sequence[str], old: PythonService, new: PythonService, chance: random.Random
) -> int:
    """Returns how many turns were interrupted. All turns have ended, on the new host."""
    idle: set[str] = set()

    async def run_turn(session_id: str, delay: float) -> None:
        await asyncio.sleep(delay)
        await client.run_turn(session_id, f"[[script:{_SCRIPT}]]", patience=_PATIENCE)
        idle.add(session_id)

    async with asyncio.TaskGroup() as group:
        for session_id in session_ids:
            group.create_task(run_turn(session_id, chance.uniform(0, _TURN_SECONDS)))
        await asyncio.sleep(chance.uniform(_TURN_SECONDS / 2, _TURN_SECONDS))
        interrupted = len(session_ids) - len(idle)
        await old.kill()
        await new.start()
    return interrupted


def check_session(events: Sequence[Event], session_id: str, findings: HostMoveFindings) -> None:
    """Compares what each call found with what the last call with a result has left."""
    expected: tuple[str, ...] = _NEW
    errors = [event["error"]["message"] for event in events if event["type"] == "session.error"]
    findings.faults += [f"{session_id}: {error}" for error in errors]
    for event in events:
        if event["type"] != "agent.tool_result":
            continue
        output = "".join(block.get("text", "") for block in event["content"])
        printed = _PRINTED.search(output)
        if printed is None:
            if "unknown" not in output:
                findings.faults.append(f"{session_id}: {output!r}")
            continue
        findings.calls += 1
        *found, new_state = printed.groups()
        if tuple(found) != expected:
            findings.faults.append(f"{session_id}: a call found {found}, not {[*expected]}")
        expected = (new_state,) * len(_NEW)
