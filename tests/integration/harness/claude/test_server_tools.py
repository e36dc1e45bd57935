"""Server-side tools with the real CLI, and the context that they, MCP servers and custom tools receive."""

import asyncio
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from bench.support.mcp_server.server_process import McpProcess
from tests.integration.harness.claude.session_runner import ASK_TOOL, SessionRunner
from tests.integration.harness.doubles import text_of

from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.ports.harness import McpAccess
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.recovery_text import UNKNOWN
from footplate.harness.tool_calls import server_toolsets
from footplate.testing import ScriptedModel, replies, text, tool
from footplate.tools import ENTRY_POINT_GROUP, ToolContext, Toolset

pytestmark = pytest.mark.timing

toolset = Toolset()
calls: list[ToolContext] = []
SCRIPTS = {
    "all": replies(
        [
            tool("mcp__demo__note", {"line": "one"}),
            tool("mcp__notes__read_meta", {}),
            tool("mcp__custom__ask", {"q": 1}),
        ],
        [text("Thanks.")],
    ),
    "slow": replies([tool("mcp__demo__note", {"line": "slow"})], [text("After it.")]),
}


@toolset.tool
async def note(line: str, call: ToolContext) -> str:
    """Write a line down."""
    calls.append(call)
    if line == "slow":
        await asyncio.sleep(200)
    return f"Noted: {line}"


@pytest.mark.requirement("R1")
@pytest.mark.requirement("F6")
async def test_all_tools_outside_the_environment_receive_the_context(
    tmp_path: Path, notes: McpProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("demo", f"{__name__}:toolset", ENTRY_POINT_GROUP)
    monkeypatch.setattr(server_toolsets, "entry_points", lambda name, **_: [point] if name == "demo" else [])
    calls.clear()
    servers = (McpServer(name="notes", url=notes.url), McpServer(name="demo", url="", is_server_toolset=True))
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path, servers=servers, custom_tools=(ASK_TOOL,))
        runner.harness = ClaudeHarness(McpAccess(allow=("127.0.0.1",)))
        runner.caller_context = {"ticket": "F-6"}
        assert (await runner.run_turn("All. [[script:all]]")).status is TurnStatus.AWAITING
        uses = {event.body["name"]: event for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_USE}
        noted, meta = (text_of(event) for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_RESULT)
        assert noted == "Noted: one"
        assert meta == '{"footplate/context": {"ticket": "F-6"}}'
        assert [(call.call_id, call.context) for call in calls] == [(uses["note"].id, {"ticket": "F-6"})]
        (asked,) = (event for event in runner.turn_events() if event.type == ev.AGENT_CUSTOM_TOOL_USE)
        assert asked.body["context"] == {"ticket": "F-6"}

        runner.begin_turn("Slowly. [[script:slow]]")
        running = asyncio.create_task(runner.run_attempt("one"))
        while len(calls) == 1:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.02)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (await runner.run_attempt("two")).text == "After it."
        result = [event for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_RESULT][-1]
        assert (text_of(result), len(calls)) == (UNKNOWN, 2)
        await runner.close()
    server_toolsets._load_toolset.cache_clear()
