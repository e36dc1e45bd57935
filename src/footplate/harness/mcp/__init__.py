"""The worker's client for the MCP servers and the server-side toolsets of an agent, for all harnesses.

Environments cannot reach these servers, so the worker makes all calls.
"""

from typing import TYPE_CHECKING

from footplate.domain.ports.harness import McpAccess, TurnContext
from footplate.harness import lazy_import

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers


async def create_servers(turn: TurnContext, access: McpAccess) -> "McpServers | None":
    """The agent's MCP servers and toolsets, or None if it has none. The first use imports the MCP library, which takes
    a second.
    """
    if not turn.config.mcp_servers:
        return None
    module = await lazy_import.import_in_thread("footplate.harness.mcp.tool_client")
    servers: McpServers = module.McpServers(turn.config, access, turn)
    return servers
