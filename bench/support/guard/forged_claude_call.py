"""A process inside the sandbox forges Claude Code's output: the gate decides on one tool, and another one is called."""

import asyncio
import tempfile
from pathlib import Path

import claude_agent_sdk as sdk
from tests.integration.harness.claude.transcript_lines import FILE, call_line, prompt_line
from tests.integration.harness.doubles import LocalEnvironment, World

from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.claude.transcripts.transcript_lines import Transcript

_TOOL = "mcp__tracker__delete"


async def attack() -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(LocalEnvironment(Path(directory)))
        recorder = TurnRecorder(world.context(), Transcript(world.log.entries), 0)
        await recorder.begin_request([], [])
        start = {"type": "message_start", "message": {"id": "m", "model": "claude-sonnet-5", "usage": {}}}
        for event in (start, {"type": "message_stop"}):
            recorder.handle_message(sdk.StreamEvent("u", "s", event))
        await recorder.record_lines(FILE, [prompt_line("turn_1"), call_line("a", "m", "t1", name=_TOOL)])
        judged = asyncio.create_task(recorder.authorize(Call("t1", "Read", {"command": "ls"})))
        await asyncio.gather(judged, return_exceptions=True)
        made = recorder.claim_start("t1", _TOOL, {"command": "ls"})
        recorder.close()
    return f"The gate decided on Read, and {_TOOL} was allowed." if made else None
