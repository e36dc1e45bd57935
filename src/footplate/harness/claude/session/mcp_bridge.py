"""Offers the agent's MCP servers and server-side toolsets to the Claude Code CLI as in-process servers of the SDK.

When the CLI requests a call, the worker calls the real MCP server, which the environment cannot reach, or the function
of the toolset. Every call is
logged before it is made. A call that was not permitted, or was already made, is rejected.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import claude_agent_sdk as sdk
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from footplate.domain.agents import mcp_servers
from footplate.domain.json import Json
from footplate.domain.ports.harness import TurnContext
from footplate.harness.claude.recording.recorder import TurnRecorder

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers, McpTool

_CALL_ID: Final = "claudecode/toolUseId"
"""The metadata key with the id of the model's call."""
NOT_PERMITTED: Final = "This call was not permitted."


class McpBridge:
    """The bridge of one CLI, which may serve several turns, one after the other."""

    def __init__(self, turn: TurnContext, servers: "McpServers", recorder: Callable[[], TurnRecorder]) -> None:
        """`servers`: with their tools listed. `recorder`: returns the recorder of the CLI's current turn."""
        self._turn = turn
        self._servers = servers
        self._recorder = recorder
        self.has_all_servers = not servers.unusable_servers
        """Whether every server could be used. If not, the next turn has to connect again."""

    def sdk_servers(self) -> dict[str, sdk.McpSdkServerConfig]:
        by_server: dict[str, list[McpTool]] = {}
        for tool in self._servers.tools.values():
            by_server.setdefault(tool.ref[0], []).append(tool)
        return {mcp_servers.sanitize_name(name): self._create_server(name, tools) for name, tools in by_server.items()}

    def switch_turn(self, turn: TurnContext, servers: "McpServers") -> None:
        """Switches to another turn. The CLI continues with the tools that it already knows."""
        servers.reuse_tools(self._servers.tools)
        self._turn, self._servers = turn, servers

    def _create_server(self, name: str, tools: "list[McpTool]") -> sdk.McpSdkServerConfig:
        listed = [
            types.Tool(
                name=mcp_servers.sanitize_name(tool.ref[1]),
                description=tool.description,
                input_schema=tool.input_schema,
            )
            for tool in tools
        ]
        return create_sdk_server(mcp_servers.sanitize_name(name), listed, self._call_tool)

    async def _call_tool(self, call_id: str, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        if not self._recorder().claim_start(call_id, name, arguments):
            return types.CallToolResult(content=[_text_content(NOT_PERMITTED)], is_error=True)
        self._turn.log.check()
        use = self._recorder().find_use(call_id)
        result = await self._servers.call_tool(name, arguments, use.id if use is not None else "")
        return types.CallToolResult(
            content=[_to_mcp_content(block) for block in result.content], is_error=result.is_error
        )


def create_sdk_server(
    name: str,
    tools: Sequence[types.Tool],
    call: Callable[[str, str, dict[str, Any]], Awaitable[types.CallToolResult]],
) -> sdk.McpSdkServerConfig:
    """Creates an in-process SDK server. `call`: called with the call's id, the tool's name for the model, and the
    input.
    """
    listed = types.ListToolsResult(tools=[*tools])

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call_id = str((params.meta or {}).get(_CALL_ID) or "")
        return await call(call_id, mcp_servers.model_tool_name(name, params.name), params.arguments or {})

    return {"type": "sdk", "name": name, "instance": Server(name, on_list_tools=list_tools, on_call_tool=call_tool)}


def _to_mcp_content(block: Json) -> types.ContentBlock:
    assert isinstance(block, dict)
    source = block.get("source")
    if isinstance(source, dict):
        kind, data = str(source.get("media_type")), str(source.get("data"))
        if block["type"] == "image":
            return types.ImageContent(data=data, mime_type=kind)
        resource = types.BlobResourceContents(uri="attachment:document", mime_type=kind, blob=data)
        return types.EmbeddedResource(resource=resource)
    return _text_content(str(block.get("text")))


def _text_content(text: str) -> types.TextContent:
    return types.TextContent(text=text)
