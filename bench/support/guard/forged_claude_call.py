"""A process inside the sandbox forges Claude Code's output: the gate is asked about one tool, and another is called."""

import asyncio
import tempfile
from pathlib import Path

import claude_agent_sdk as sdk
from tests.integration.harness.claude.lines import PLACE, called, prompt
from tests.integration.harness.twins import LocalEnvironment, World

from footplate.harness.claude.mapping import Call
from footplate.harness.claude.recorder import Recorder
from footplate.harness.claude.transcript import Transcript

_TOOL = "mcp__tracker__delete"


async def attack() -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(LocalEnvironment(Path(directory)))
        recorder = Recorder(world.context(), Transcript(world.log.entries), 0)
        await recorder.begin([], [])
        start = {"type": "message_start", "message": {"id": "m", "model": "claude-sonnet-5", "usage": {}}}
        for event in (start, {"type": "message_stop"}):
            recorder.heard(sdk.StreamEvent("u", "s", event))
        await recorder.mirrored(PLACE, [prompt("turn_1"), called("a", "m", "t1", name=_TOOL)])
        judged = asyncio.create_task(recorder.intend(Call("t1", "Read", {"command": "ls"})))
        await asyncio.gather(judged, return_exceptions=True)
        made = recorder.starts("t1", _TOOL, {"command": "ls"})
        recorder.close()
    return f"The gate was asked about Read, and {_TOOL} was let through." if made else None
