"""Offers the agent's custom tools to the Claude Code CLI as an in-process MCP server.

A call of such a tool is passed to the client, which runs it and returns the result.
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

    async def ask_client(call_id: str, name: str, _arguments: dict[str, Any]) -> types.CallToolResult:
        serving = recorder()
        was_asked = await serving.pending_calls.ask_client(call_id, name, serving)
        text = types.TextContent(text=_WAITING_FOR_CLIENT if was_asked else NOT_PERMITTED)
        return types.CallToolResult(content=[text], is_error=not was_asked)

    return {tools.server: create_sdk_server(tools.server, listed, ask_client)}
