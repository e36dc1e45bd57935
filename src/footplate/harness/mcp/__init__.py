"""The worker's client for an agent's MCP servers, for every harness. Environments cannot reach these servers."""

from typing import TYPE_CHECKING

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import McpAccess
from footplate.harness import loading

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import McpServers


async def create_servers(config: ResolvedConfig, access: McpAccess) -> "McpServers | None":
    """The agent's MCP servers, or None if it has none. The first use imports the MCP library, which takes a second."""
    if not config.mcp_servers:
        return None
    module = await loading.import_in_thread("footplate.harness.mcp.servers")
    servers: McpServers = module.Servers(config, access)
    return servers
