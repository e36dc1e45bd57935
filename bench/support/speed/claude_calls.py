"""Measures what Footplate adds to the Bash, Edit and Write calls of Claude Code.

The same CLI makes the same calls against the same scripted model, connected once and in alternating turns: in a
session here, and bare, started by the Claude Agent SDK without a sandbox. Half of the Bash and Write calls make a new
file, half change one.

`added_ms`: the time from the end of the model's response with the call until its next request arrives, here minus bare.
This is how long an agent waits for the permission hook, the call's row in the log, the sandbox, the model proxy, and
the previous call's snapshot if that is not finished.

`added_in_stream_ms`: the time from `agent.tool_use` to `agent.tool_result` in a client's stream, minus the time between
the SDK's messages of the call and of its result. It includes the snapshot and the commit of the result. Alone it would
look too good, because `agent.tool_use` is in the stream only after the call is allowed.

`transcript_wait_ms`: the time that waiting for the CLI's transcript adds, without Footplate. The CLI writes each line
up to 100 ms late, and we found no option in version 2.1.325 that changes this. No call may start before the log has the
model's response and its transcript lines, so this part of `added_ms` remains as long as the lines come from the CLI. It
is measured with the bare SDK, a session store in memory, and a hook that waits for the
call's line.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Final, cast

import claude_agent_sdk as sdk

from bench.prove.figure import require
from bench.support.claude import direct_cli
from bench.support.cluster import Cluster
from bench.support.minimal_client import Frames, MinimalClient, events_path
from bench.support.speed.measurement import median, milliseconds
from footplate.domain.json import JsonObject
from footplate.environments.isolation.filesystem_view import WORKSPACE_MOUNT
from footplate.testing import Replies, replies, reply, text, tool
from footplate.testing.scripted_model_process import ModelProcess

LIMIT_MS: Final = 30
_TOOLS: Final = ("Bash", "Edit", "Write")
_CALLS: Final = 12
_SIDES: Final = ("ours", "bare", "waiting")


async def measure_claude_calls(cluster: Cluster, project_id: str, turns: int) -> dict[str, dict[str, float]]:
    """Returns a row of milliseconds for each tool, from one session of the project and two bare CLIs."""
    async with MinimalClient(cluster.base_urls[0], cluster.key) as client:
        agent = {"name": "claude", "model": direct_cli.MODEL, "tools": [{"type": "agent_toolset_20260401"}]}
        agent_id = (await client.post("/v1/agents", {**agent, "harness": "claude"}))["id"]
        session_fields: JsonObject = {
            **await client.create_session_fields(),
            "agent": agent_id,
            "project_ids": [project_id],
        }
        return {
            f"claude, {name}": await _measure_tool(cluster.model, client, session_fields, name, turns)
            for name in _TOOLS
        }


async def _measure_tool(
    model: ModelProcess, client: MinimalClient, session_fields: JsonObject, name: str, turns: int
) -> dict[str, float]:
    until_request: dict[str, list[float]] = {side: [] for side in _SIDES}
    in_stream: dict[str, list[float]] = {side: [] for side in _SIDES}
    async with AsyncExitStack() as exits:
        session_id = (await client.post("/v1/sessions", session_fields))["id"]
        frames = await exits.enter_async_context(client.stream(events_path(session_id)))
        clients = {
            "bare": await exits.enter_async_context(direct_cli.open_client(model)),
            "waiting": await exits.enter_async_context(direct_cli.open_client(model, **_TranscriptWait().options())),
        }
        for turn in range(turns + 1):
            for side in _SIDES:
                root = WORKSPACE_MOUNT if side == "ours" else str(clients[side].options.cwd)
                script = f"claude-{name}-{turn}-{side}"
                await model.install(script, _script(name, turn, root))
                if side == "ours":
                    took = await _run_here(client, session_id, frames, script)
                else:
                    took = await _run_bare(clients[side], script)
                if turn:  # the first one starts the CLI and its shell
                    in_stream[side] += took
                    until_request[side] += await _seconds_until_next_request(model, script)
    waits = {side: median(seconds) for side, seconds in until_request.items()}
    streams = {side: median(seconds) for side, seconds in in_stream.items()}
    row = {
        "bare_ms": waits["bare"],
        "ours_ms": waits["ours"],
        "added_ms": waits["ours"] - waits["bare"],
        "transcript_wait_ms": waits["waiting"] - waits["bare"],
        "bare_in_stream_ms": streams["bare"],
        "ours_in_stream_ms": streams["ours"],
        "added_in_stream_ms": streams["ours"] - streams["bare"],
    }
    return {key: milliseconds(seconds) for key, seconds in row.items()}


def _script(name: str, turn: int, root: str) -> Replies:
    calls = [tool(name, _input(name, turn, call, root)) for call in range(_CALLS)]
    if name == "Edit":  # the CLI edits only files that it has written or read
        calls.insert(0, tool("Write", {"file_path": f"{root}/edited", "content": "line 0\n"}))
    return replies(*[[call] for call in calls], reply(text("Done."), repeat=True))


def _input(name: str, turn: int, call: int, root: str) -> JsonObject:
    file = f"{name}-{turn}-{call}" if call % 2 else f"{name}-{call}"
    match name:
        case "Bash":
            return {"command": f"date +%N > {file}"}
        case "Edit":
            return {"file_path": f"{root}/edited", "old_string": f"line {call}\n", "new_string": f"line {call + 1}\n"}
        case _:
            return {"file_path": f"{root}/{file}", "content": f"turn {turn}\n"}


async def _run_here(client: MinimalClient, session_id: str, frames: Frames, script: str) -> list[float]:
    await client.send(session_id, f"Go. [[script:{script}]]")
    received = await frames.until_idle()
    began = {frame.body["id"]: frame.at for frame in received if frame.event == "agent.tool_use"}
    results = [frame for frame in received if frame.event == "agent.tool_result"]
    _require_success([frame.body.get("is_error") for frame in results])
    return [frame.at - began[frame.body["tool_use_id"]] for frame in results][-_CALLS:]


async def _run_bare(connected: sdk.ClaudeSDKClient, script: str) -> list[float]:
    began: dict[str, float] = {}
    took: list[float] = []
    failed: list[bool | None] = []
    await connected.query(f"Go. [[script:{script}]]")
    async for message in connected.receive_response():
        content = message.content if isinstance(message, sdk.AssistantMessage | sdk.UserMessage) else []
        for block in content:
            if isinstance(block, sdk.ToolUseBlock):
                began[block.id] = time.time()
            elif isinstance(block, sdk.ToolResultBlock):
                took.append(time.time() - began[block.tool_use_id])
                failed.append(block.is_error)
    _require_success(failed)
    return took[-_CALLS:]


def _require_success(failed: Sequence[bool | None]) -> None:
    require(holds=len(failed) >= _CALLS and not any(failed), otherwise=f"calls failed: {failed}")


async def _seconds_until_next_request(model: ModelProcess, script: str) -> list[float]:
    """For each call of a turn: from the end of the response with the call until the next request arrives."""
    records = await model.requests(script, bodies=False)
    moments = [(float(str(record["time"])), float(str(record["ended_at"]))) for record in records]
    require(holds=len(moments) > _CALLS, otherwise=f"{len(moments)} requests for {_CALLS} calls")
    return [arrived - ended for (_, ended), (arrived, _) in pairwise(moments)][-_CALLS:]


class _TranscriptWait:
    """A session store in memory, and a hook that lets a call start when the store has its line."""

    def __init__(self) -> None:
        self._stored: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def options(self) -> dict[str, object]:
        hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[self._wait])]}
        return {"session_store": cast("sdk.SessionStore", self), "session_store_flush": "eager", "hooks": hooks}

    async def append(self, _key: sdk.SessionKey, entries: Sequence[JsonObject]) -> None:
        for entry in entries:
            message = entry.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else []:
                if isinstance(block, dict) and block.get("type") == "tool_use":
                    self._stored[str(block["id"])].set()

    async def load(self, _key: sdk.SessionKey) -> None:
        return None

    async def _wait(
        self, _given: sdk.HookInput, tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        await self._stored[str(tool_use_id)].wait()
        return {}
