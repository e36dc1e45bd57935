"""The worker's client for an agent's MCP servers, for every harness. Environments cannot reach these servers."""

from typing import TYPE_CHECKING

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import McpAccess
from footplate.harness import loading

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers


async def servers_of(config: ResolvedConfig, access: McpAccess) -> "Servers | None":
    """The agent's MCP servers, or None if it has none. The first use imports the MCP library, which takes a second."""
    if not config.mcp_servers:
        return None
    module = await loading.module("footplate.harness.mcp.servers")
    made: Servers = module.Servers(config, access)
    return made
