"""An agent's custom tools as the CLI sees them: a server of the SDK's kind, which asks the client."""

from collections.abc import Callable
from typing import Any, Final

import claude_agent_sdk as sdk
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from footplate.domain import mcp
from footplate.harness.claude.bridge import CALL_ID, REFUSED
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.recorder import Recorder

_ASKED: Final = "The client was asked, and has not answered yet."


def configs(tools: CustomTools, recorder: Callable[[], Recorder]) -> dict[str, sdk.McpSdkServerConfig]:
    """`recorder`: of the turn that the CLI works for at the time."""
    listed = types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=tool.description, input_schema=tool.input_schema)
            for name, tool in tools.listed.items()
        ]
    )

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call_id = str((params.meta or {}).get(CALL_ID) or "")
        serving = recorder()
        asked = await serving.asking.ask(call_id, mcp.model_name(tools.server, params.name), serving)
        text = types.TextContent(text=_ASKED if asked else REFUSED)
        return types.CallToolResult(content=[text], is_error=not asked)

    server = Server(tools.server, on_list_tools=list_tools, on_call_tool=call_tool)
    return {tools.server: {"type": "sdk", "name": tools.server, "instance": server}}
