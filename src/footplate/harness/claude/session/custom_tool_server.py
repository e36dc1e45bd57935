"""Offers the agent's custom tools to the Claude Code CLI as an in-process MCP server, and the tools for child sessions.

A call of a custom tool is passed to the client, which runs it and returns the result. The worker makes a call that
starts child sessions or sends them a message. A call that waits for them parks the turn, as a custom tool's does.
"""

from collections.abc import Callable
from typing import Any, Final

import claude_agent_sdk as sdk
from mcp import types

from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.session.mcp_bridge import NOT_PERMITTED, create_sdk_server

_WAITING_FOR_CLIENT: Final = "This call is waiting for the client's result."


def sdk_servers(tools: CustomTools, recorder: Callable[[], TurnRecorder]) -> dict[str, sdk.McpSdkServerConfig]:
    """The server's SDK configuration. `recorder`: returns the recorder of the CLI's current turn."""
    listed = [
        types.Tool(name=name, description=tool.description, input_schema=tool.input_schema)
        for name, tool in tools.by_cli_name.items()
    ]

    async def call_tool(call_id: str, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        serving = recorder()
        if (use := serving.find_use(call_id)) is not None:
            if not serving.claim_start(call_id, name, arguments):
                return _result(NOT_PERMITTED, is_error=True)
            done = await serving.pending_calls.run_session_tool(tools.own_name(name), arguments, use, serving)
            return _result(done.text, is_error=done.is_error)
        was_asked = await serving.pending_calls.ask_client(call_id, name, serving)
        return _result(_WAITING_FOR_CLIENT if was_asked else NOT_PERMITTED, is_error=not was_asked)

    return {tools.server: create_sdk_server(tools.server, listed, call_tool)}


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
