"""Lists and calls the tools of the MCP servers and server-side toolsets of a turn. Each server is connected, and each
toolset imported, when it is first used.
"""

import asyncio
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, cast

import structlog
from mcp import types
from mcp.shared.exceptions import MCPError

from footplate.domain.agents import environment_config, mcp_servers
from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.mcp_servers import McpServer, ToolRef
from footplate.domain.json import Json, JsonObject
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.harness import McpAccess, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.mcp import result_content
from footplate.harness.mcp.connection import ConnectionLost, ServerConnection, ServerUnusable
from footplate.harness.mcp.transport import CheckedTransport
from footplate.harness.tool_calls import server_toolsets
from footplate.harness.tool_calls.server_toolsets import ToolsetUnusable
from footplate.tools import Tool, ToolContext, Toolset

log = structlog.get_logger(__name__)

MAX_NAME_LENGTH: Final = 128
CONTEXT_META: Final = "footplate/context"
"""The key in `_meta` of a request to an MCP server that has the context of the session and of the message."""
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
    def __init__(self, config: ResolvedConfig, access: McpAccess, turn: TurnContext | None = None) -> None:
        """`turn`: describes the calls to servers and functions. None: nothing is called for a turn."""
        self._turn = turn
        self._servers = {server.name: server for server in config.mcp_servers}
        self._environment = environment_config.load_environment_config(config.environment)
        self._access = access
        self._policy = AddressPolicy(access.allow)
        self._connections: dict[str, ServerConnection] = {}
        self._connecting = {name: asyncio.Lock() for name in self._servers}
        self.names = mcp_servers.ToolNames(config.mcp_servers)
        self.tools: dict[str, McpTool] = {}
        """By the name that the model uses."""
        self.unusable_servers: dict[str, str] = {}
        """Why servers and toolsets could not be used, by name."""

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

    async def call_tool(self, name: str, arguments: JsonObject, use_id: str = "") -> McpToolResult:
        """Calls a tool. Errors of the model or the server are returned as error results, never raised. `use_id`: the ID
        of the call's event.
        """
        offered, ref = self.tools.get(name), self.names.resolve(name)
        if ref is not None and (reason := self.unusable_servers.get(ref[0])) is not None:
            return _not_made(self._servers[ref[0]], reason)
        if offered is None:
            known = ", ".join(self.tools) or "none"
            return McpToolResult(
                result_content.text_blocks(f"The tool {name!r} does not exist. Available MCP tools: {known}."),
                is_error=True,
            )
        server, tool = offered.ref
        if self._servers[server].is_server_toolset:
            return await self._call_function(self._servers[server], tool, arguments, use_id)
        try:
            connection = await self._connect(self._servers[server])
        except ServerUnusable as error:
            return _not_made(self._servers[server], str(error))
        return await self._call_connected(connection, tool, arguments)

    def reuse_tools(self, tools: dict[str, McpTool]) -> None:
        """Reuses tools that were listed before, for a CLI that continues with the tools it already knows."""
        self.tools = tools
        self.names.add((name, offered.ref) for name, offered in tools.items())

    async def aclose(self) -> None:
        connections = [*self._connections.values()]
        self._connections = {}
        await asyncio.gather(*(connection.aclose() for connection in connections))

    async def _call_connected(self, connection: ServerConnection, tool: str, arguments: JsonObject) -> McpToolResult:
        seconds = self._access.call_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await connection.call_tool(tool, dict(arguments), self._meta())
        except TimeoutError:
            return McpToolResult(result_content.text_blocks(_TIMED_OUT.format(seconds=seconds)), is_error=True)
        except ConnectionLost as error:
            return McpToolResult(result_content.text_blocks(_UNKNOWN.format(why=error)), is_error=True)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                return McpToolResult(result_content.text_blocks(_UNKNOWN.format(why=error.message)), is_error=True)
            return McpToolResult(
                result_content.text_blocks(f"The MCP server rejected the call: {error.message}"), is_error=True
            )
        except Exception as error:  # noqa: BLE001 - a tool that raises fails the call, not the turn
            return McpToolResult(result_content.text_blocks(_UNKNOWN.format(why=type(error).__name__)), is_error=True)
        return McpToolResult(result_content.to_blocks(result), is_error=bool(result.is_error))

    async def _call_function(self, server: McpServer, name: str, arguments: JsonObject, use_id: str) -> McpToolResult:
        turn = self._turn
        assert turn is not None
        try:
            function = await _load_function(server, name)
        except ServerUnusable as error:
            return _not_made(server, str(error))
        context = ToolContext(
            organisation=turn.organisation,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            call_id=use_id,
            principal=turn.author,
            context=deepcopy(turn.caller_context),
            settings=deepcopy(server.settings),
            working_directory=turn.environment.working_directory,
        )
        result = await server_toolsets.call_tool(function, arguments, context)
        return McpToolResult(result_content.text_blocks(result.text), is_error=result.is_error)

    def _meta(self) -> types.RequestParamsMeta | None:
        context = self._turn.caller_context if self._turn is not None else {}
        return cast("types.RequestParamsMeta", {CONTEXT_META: context}) if context else None

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
            if server.is_server_toolset:  # without a limit: its import cannot be cancelled
                self._add_tools(server, await _list_functions(server))
                return None
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
        self.unusable_servers[server.name] = str(error)
        log.info(
            "MCP server or toolset cannot be used; the turn continues without it",
            action="mcp.unusable",
            server=server.name,
            denied=error.needs_credentials,
        )
        message = f"The {_kind(server)} {server.name!r} cannot be used: {error} The turn continues without its tools."
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


def _kind(server: McpServer) -> str:
    return "toolset" if server.is_server_toolset else "MCP server"


def _not_made(server: McpServer, reason: str) -> McpToolResult:
    message = f"The call was not made, because the {_kind(server)} {server.name!r} cannot be used: {reason}"
    return McpToolResult(result_content.text_blocks(message), is_error=True)


async def _load_function(server: McpServer, name: str) -> Tool:
    """The function behind a tool. The loaded toolset may differ from the listed one, if a warm CLI is reused."""
    toolset = await _load_toolset(server)
    if name not in toolset.tools:
        raise ServerUnusable(f"it has no tool {name!r} on this worker.")
    return toolset.tools[name]


async def _load_toolset(server: McpServer) -> Toolset:
    try:
        return await server_toolsets.load_toolset(server.name)
    except ToolsetUnusable as error:
        raise ServerUnusable(str(error)) from error


async def _list_functions(server: McpServer) -> list[types.Tool]:
    """Lists the tools of a toolset. Refuses the whole toolset if the agent configures a tool that it does not have: the
    tool that was meant might be enabled against the agent's definition.
    """
    toolset = await _load_toolset(server)
    if unknown := sorted(server.tools.keys() - toolset.tools.keys()):
        known = ", ".join(sorted(toolset.tools))
        raise ServerUnusable(f"the agent configures {unknown[0]!r}, which is not one of its tools: {known}.")
    return [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema)
        for tool in toolset.tools.values()
    ]
