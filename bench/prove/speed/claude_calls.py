"""Measures what Footplate adds to the Bash, Edit and Write calls of Claude Code.

The same CLI makes the same calls against the same scripted model twice: in a session, and bare, started by the Claude
Agent SDK without a sandbox. Both have one connected CLI, and their turns alternate. Half of the Bash and Write calls
make a new file, half change one.

`added_ms` is about the model: from the end of its response with the call until its next request arrives, here minus
bare. It has all that makes an agent wait: the permission hook, the call's row in the log before it starts, the sandbox,
the proxy of the model requests, and the previous call's snapshot where the next call has to wait for it.

`added_in_stream_ms` is about a client: from `agent.tool_use` to `agent.tool_result` in its stream, minus the time
between the SDK's messages of the same call and result. It has the snapshot and the result's commit. It alone would be
too kind, because `agent.tool_use` is in the stream when the call has been allowed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import claude_agent_sdk as sdk

from bench.prove.claude import bare
from bench.prove.cluster import Cluster
from bench.prove.figure import require
from bench.prove.lean import Frames, Lean, Received, events_path
from bench.prove.speed.measured import median, milliseconds
from footplate.domain.json import JsonObject
from footplate.environments.sandbox.view import WORKSPACE
from footplate.testing import replies, reply, text, tool
from footplate.testing.process import ModelProcess

LIMIT_MS: Final = 30
TOOLS: Final = ("Bash", "Edit", "Write")
_CALLS: Final = 12


@dataclass(slots=True)
class _Measured:
    """Seconds of each call."""

    until_next_request: list[float] = field(default_factory=list)
    in_stream: list[float] = field(default_factory=list)


async def measure_claude_calls(cluster: Cluster, project: str, turns: int) -> dict[str, dict[str, float]]:
    """Returns a row for each tool. `project`: the path of the repository that the session works in."""
    async with Lean(cluster.base_urls[0], cluster.key) as lean:
        added = await lean.post("/v1/projects", {"path": project, "name": "claude-calls"})
        tools = [{"type": "agent_toolset_20260401"}]
        agent = await lean.post(
            "/v1/agents", {"name": "claude-calls", "model": bare.MODEL, "harness": "claude", "tools": tools}
        )
        seat = {**await lean.seat(), "agent": agent["id"], "project_ids": [added["id"]]}
        return {f"claude, {name}": await _measure_tool(cluster.model, lean, seat, name, turns) for name in TOOLS}


async def _measure_tool(
    model: ModelProcess, lean: Lean, seat: JsonObject, name: str, turns: int
) -> dict[str, float]:
    ours, alone = _Measured(), _Measured()
    session_id = (await lean.post("/v1/sessions", seat))["id"]
    async with lean.stream(events_path(session_id)) as frames, bare.client(model) as connected:
        for turn in range(turns + 1):
            here = await _install(model, name, turn, WORKSPACE)
            there = await _install(model, name, turn, str(connected.options.cwd))
            here_in_stream = await _run_here(lean, session_id, frames, here)
            there_in_stream = await _run_bare(connected, there)
            if turn:  # the first one starts the CLI's shell
                ours.in_stream += here_in_stream[-_CALLS:]
                alone.in_stream += there_in_stream[-_CALLS:]
                ours.until_next_request += await _seconds_until_next_request(model, here)
                alone.until_next_request += await _seconds_until_next_request(model, there)
    medians = {
        "bare_ms": median(alone.until_next_request),
        "ours_ms": median(ours.until_next_request),
        "added_ms": median(ours.until_next_request) - median(alone.until_next_request),
        "bare_in_stream_ms": median(alone.in_stream),
        "ours_in_stream_ms": median(ours.in_stream),
        "added_in_stream_ms": median(ours.in_stream) - median(alone.in_stream),
    }
    return {key: milliseconds(seconds) for key, seconds in medians.items()}


async def _install(model: ModelProcess, name: str, turn: int, root: str) -> str:
    """Installs the calls of one turn as a script, and returns its name."""
    script = f"claude-{name}-{turn}-{'here' if root == WORKSPACE else 'bare'}"
    calls = [tool(name, _input(name, turn, call, root)) for call in range(_CALLS)]
    if name == "Edit":  # the CLI edits a file that it knows
        calls.insert(0, tool("Write", {"file_path": f"{root}/edited", "content": "line 0\n"}))
    await model.install(script, replies(*[[call] for call in calls], reply(text("Done."), repeat=True)))
    return script


def _input(name: str, turn: int, call: int, root: str) -> JsonObject:
    new = bool(call % 2)
    file = f"{name}-{turn}-{call}" if new else f"{name}-{call}"
    match name:
        case "Bash":
            return {"command": f"date +%N > {file}"}
        case "Edit":
            return {"file_path": f"{root}/edited", "old_string": f"line {call}\n", "new_string": f"line {call + 1}\n"}
        case _:
            return {"file_path": f"{root}/{file}", "content": f"turn {turn}\n"}


async def _run_here(lean: Lean, session_id: str, frames: Frames, script: str) -> list[float]:
    await lean.send(session_id, f"Go. [[script:{script}]]")
    received = await frames.until_idle()
    began = {frame.body["id"]: frame.at for frame in received if frame.event == "agent.tool_use"}
    results = [frame for frame in received if frame.event == "agent.tool_result"]
    _require_success([frame.body.get("is_error") for frame in results], received)
    return [frame.at - began[frame.body["tool_use_id"]] for frame in results]


async def _run_bare(connected: sdk.ClaudeSDKClient, script: str) -> list[float]:
    began: dict[str, float] = {}
    took: list[float] = []
    failed: list[bool | None] = []
    await connected.query(f"Go. [[script:{script}]]")
    async for message in connected.receive_response():
        blocks = message.content if isinstance(message, sdk.AssistantMessage | sdk.UserMessage) else ""
        for block in blocks if isinstance(blocks, list) else []:
            if isinstance(block, sdk.ToolUseBlock):
                began[block.id] = time.time()
            elif isinstance(block, sdk.ToolResultBlock):
                took.append(time.time() - began[block.tool_use_id])
                failed.append(block.is_error)
    _require_success(failed, failed)
    return took


def _require_success(failed: Sequence[bool | None], shown: Sequence[Received | bool | None]) -> None:
    holds = len(failed) >= _CALLS and not any(failed)
    require(holds=holds, otherwise=f"{len(failed)} results, some of them errors: {shown}"[:2000])


async def _seconds_until_next_request(model: ModelProcess, script: str) -> list[float]:
    """Of the last calls of a turn: from the end of the response with the call until the next request arrives."""
    records = await model.requests(script, bodies=False)
    moments = [(float(str(record["time"])), float(str(record["ended_at"]))) for record in records]
    require(holds=len(moments) > _CALLS, otherwise=f"{len(moments)} requests of {_CALLS} calls")
    return [arrived - ended for (_, ended), (arrived, _) in pairwise(moments)][-_CALLS:]
