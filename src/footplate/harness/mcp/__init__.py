"""The worker's client for the MCP servers of an agent, for all harnesses.

Environments cannot reach these servers, so the worker makes all calls.
"""

from typing import TYPE_CHECKING

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.ports.harness import McpAccess
from footplate.harness import lazy_import

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers


async def create_servers(config: ResolvedConfig, access: McpAccess) -> "McpServers | None":
    """The agent's MCP servers, or None if it has none. The first use imports the MCP library, which takes a second."""
    if not config.mcp_servers:
        return None
    module = await lazy_import.import_in_thread("footplate.harness.mcp.tool_client")
    servers: McpServers = module.McpServers(config, access)
    return servers
