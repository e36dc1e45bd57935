"""Lists and calls the tools of the MCP servers of a turn. Each server is connected when it is first used."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from mcp import types
from mcp.shared.exceptions import MCPError

from footplate.domain.agents import environment_config, mcp_servers
from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.mcp_servers import McpServer, ToolRef
from footplate.domain.json import Json, JsonObject
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.harness import McpAccess
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.mcp import result_content
from footplate.harness.mcp.connection import ConnectionLost, ServerConnection, ServerUnusable
from footplate.harness.mcp.transport import CheckedTransport

log = structlog.get_logger(__name__)

MAX_NAME_LENGTH: Final = 128
_MAX_LISTING_BYTES: Final = 1 << 20
_UNKNOWN: Final = (
    "The outcome of this call is unknown: the connection to the MCP server was lost while it was running ({why}). "
    "It may or may not have taken effect. Check before you repeat it."
)
_TIMED_OUT: Final = (
    "The outcome of this call is unknown: the MCP server did not respond within {seconds:g} s. It may or may not have "
    "taken effect. Check before you repeat it."
)


@dataclass(frozen=True, slots=True)
class McpTool:
    """An MCP tool that the agent may use."""

    name: str
    """The tool's name for the model."""
    ref: ToolRef
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpToolResult:
    content: Sequence[Json]
    is_error: bool = False


class McpServers:
    def __init__(self, config: ResolvedConfig, access: McpAccess) -> None:
        self._servers = {server.name: server for server in config.mcp_servers}
        self._environment = environment_config.load_environment_config(config.environment)
        self._access = access
        self._policy = AddressPolicy(access.allow)
        self._connections: dict[str, ServerConnection] = {}
        self._connecting = {name: asyncio.Lock() for name in self._servers}
        self.names = mcp_servers.ToolNames(config.mcp_servers)
        self.tools: dict[str, McpTool] = {}
        """By the name that the model uses."""
        self.unusable_servers: set[str] = set()
        """Names of the servers that could not be used."""

    async def list_tools(self, interrupt: asyncio.Event) -> list[Event]:
        """Lists the tools of every server. Returns an event for each server that cannot be used; the turn continues
        without it.
        """
        if not self._servers:
            return []
        listing = asyncio.create_task(self._list_all_tools())
        stop = asyncio.create_task(interrupt.wait())
        try:
            await asyncio.wait([listing, stop], return_when=asyncio.FIRST_COMPLETED)
            return listing.result() if listing.done() else []
        finally:
            stop.cancel()
            listing.cancel()
            await asyncio.gather(listing, stop, return_exceptions=True)

    async def call_tool(self, name: str, arguments: JsonObject) -> McpToolResult:
        """Calls a tool. Errors of the model or the server are returned as error results, never raised."""
        offered = self.tools.get(name)
        if offered is None:
            known = ", ".join(self.tools) or "none"
            return McpToolResult(
                result_content.error_blocks(f"The tool {name!r} does not exist. Available MCP tools: {known}."),
                is_error=True,
            )
        server, tool = offered.ref
        try:
            connection = await self._connect(self._servers[server])
        except ServerUnusable as error:
            message = f"The call was not made, because the MCP server {server!r} cannot be used: {error}"
            return McpToolResult(result_content.error_blocks(message), is_error=True)
        return await self._call_connected(connection, tool, arguments)

    def reuse_tools(self, tools: dict[str, McpTool]) -> None:
        """Reuses tools that were listed before, for a CLI that continues with the tools it already knows."""
        self.tools = tools
        self.names.add((name, offered.ref) for name, offered in tools.items())

    async def aclose(self) -> None:
        connections, self._connections = [*self._connections.values()], {}
        await asyncio.gather(*(connection.aclose() for connection in connections))

    async def _call_connected(self, connection: ServerConnection, tool: str, arguments: JsonObject) -> McpToolResult:
        seconds = self._access.call_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await connection.call_tool(tool, dict(arguments))
        except TimeoutError:
            return McpToolResult(result_content.error_blocks(_TIMED_OUT.format(seconds=seconds)), is_error=True)
        except ConnectionLost as error:
            return McpToolResult(result_content.error_blocks(_UNKNOWN.format(why=error)), is_error=True)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                return McpToolResult(result_content.error_blocks(_UNKNOWN.format(why=error.message)), is_error=True)
            return McpToolResult(
                result_content.error_blocks(f"The MCP server rejected the call: {error.message}"), is_error=True
            )
        except Exception as error:  # noqa: BLE001 - a tool that raises fails the call, not the turn
            return McpToolResult(result_content.error_blocks(_UNKNOWN.format(why=type(error).__name__)), is_error=True)
        return McpToolResult(result_content.to_blocks(result), is_error=bool(result.is_error))

    async def _connect(self, server: McpServer) -> ServerConnection:
        async with self._connecting[server.name]:
            connection = self._connections.get(server.name)
            if connection is None or not connection.alive:
                if connection is not None:
                    await connection.aclose()
                connection = await ServerConnection.connect(
                    server.url,
                    CheckedTransport(self._policy, self._environment),
                    seconds=self._access.connect_seconds,
                    call_seconds=self._access.call_seconds,
                )
                self._connections[server.name] = connection
            return connection

    async def _list_all_tools(self) -> list[Event]:
        events = await asyncio.gather(*(self._list_server_tools(server) for server in self._servers.values()))
        return [event for event in events if event is not None]

    async def _list_server_tools(self, server: McpServer) -> Event | None:
        try:
            async with asyncio.timeout(self._access.connect_seconds):
                connection = await self._connect(server)
                listed = await connection.list_tools()
            self._add_tools(server, listed)
        except TimeoutError:
            return self._report_unusable(server, ServerUnusable("it did not list its tools in time."))
        except ServerUnusable as error:
            return self._report_unusable(server, error)
        return None

    def _report_unusable(self, server: McpServer, error: ServerUnusable) -> Event:
        self.unusable_servers.add(server.name)
        log.info(
            "MCP server cannot be used; the turn continues without it",
            action="mcp.unusable",
            server=server.name,
            denied=error.needs_credentials,
        )
        message = f"The MCP server {server.name!r} cannot be used: {error} The turn continues without its tools."
        return ev.mcp_error(server.name, message, is_authentication=error.needs_credentials)

    def _add_tools(self, server: McpServer, listed: Sequence[types.Tool]) -> None:
        added: dict[str, McpTool] = {}
        for tool in listed:
            name = mcp_servers.model_tool_name(server.name, tool.name)
            if not server.offers(tool.name):
                continue
            if name in self.tools or name in added or len(name) > MAX_NAME_LENGTH:
                log.info(
                    "MCP tool omitted: its name is too long or already in use",
                    action="mcp.tool_left_out",
                    server=server.name,
                    tool=tool.name[:200],
                )
                continue
            added[name] = McpTool(name, (server.name, tool.name), tool.description or "", tool.input_schema)
        if len(json.dumps([[tool.description, tool.input_schema] for tool in added.values()])) > _MAX_LISTING_BYTES:
            raise ServerUnusable(f"its list of tools is larger than {_MAX_LISTING_BYTES} bytes.")
        self.reuse_tools({**self.tools, **added})
