"""The agent's MCP servers as the CLI sees them: servers of the SDK's kind, which the worker answers for.

The CLI asks for a tool through its own streams, and the worker makes the call. So nothing inside the environment can
reach such a server, and no call is made that is not in the log: who only asks, without having been let through, is
refused, and so is whoever asks twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import claude_agent_sdk as sdk
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from footplate.domain import mcp
from footplate.domain.json import Json
from footplate.domain.ports import TurnContext
from footplate.harness.claude.recorder import Recorder

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Offered, Servers

_CALL_ID: Final = "claudecode/toolUseId"
"""Where the CLI says which call of the model it is."""
REFUSED: Final = "Footplate has not let this call through."


class Bridge:
    """Of one CLI, which may work for one turn after the other."""

    def __init__(self, turn: TurnContext, servers: "Servers", recorder: Callable[[], Recorder]) -> None:
        """`servers`: opened. `recorder`: of the turn that the CLI works for at the time."""
        self._turn = turn
        self._servers = servers
        self._recorder = recorder
        self.whole = not servers.missing
        """Every server could be used. If not, the next turn has to ask again."""

    def configs(self) -> dict[str, sdk.McpSdkServerConfig]:
        by_server: dict[str, list[Offered]] = {}
        for tool in self._servers.tools.values():
            by_server.setdefault(tool.ref[0], []).append(tool)
        return {mcp.plain(name): self._server(name, tools) for name, tools in by_server.items()}

    def serve(self, turn: TurnContext, servers: "Servers") -> None:
        """Work for this turn from here on. The CLI goes on with the tools that it knows."""
        servers.know(self._servers.tools)
        self._turn, self._servers = turn, servers

    def _server(self, name: str, tools: "list[Offered]") -> sdk.McpSdkServerConfig:
        listed = [
            types.Tool(name=mcp.plain(tool.ref[1]), description=tool.description, input_schema=tool.input_schema)
            for tool in tools
        ]
        return served(mcp.plain(name), listed, self._call)

    async def _call(self, call_id: str, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        if not self._recorder().starts(call_id, name, arguments):
            return types.CallToolResult(content=[_text(REFUSED)], is_error=True)
        self._turn.log.check()
        answer = await self._servers.call(name, arguments)
        return types.CallToolResult(content=[_content(block) for block in answer.content], is_error=answer.is_error)


def served(
    name: str,
    tools: Sequence[types.Tool],
    call: Callable[[str, str, dict[str, Any]], Awaitable[types.CallToolResult]],
) -> sdk.McpSdkServerConfig:
    """A server of the SDK's kind. `call`: which call of the model it is, the tool as the model knows it, its input."""
    listed = types.ListToolsResult(tools=[*tools])

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call_id = str((params.meta or {}).get(_CALL_ID) or "")
        return await call(call_id, mcp.model_name(name, params.name), params.arguments or {})

    return {"type": "sdk", "name": name, "instance": Server(name, on_list_tools=list_tools, on_call_tool=call_tool)}


def _content(block: Json) -> types.ContentBlock:
    assert isinstance(block, dict)
    source = block.get("source")
    if isinstance(source, dict):
        kind, data = str(source.get("media_type")), str(source.get("data"))
        if block["type"] == "image":
            return types.ImageContent(data=data, mime_type=kind)
        held = types.BlobResourceContents(uri="attachment:document", mime_type=kind, blob=data)
        return types.EmbeddedResource(resource=held)
    return _text(str(block.get("text")))


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
