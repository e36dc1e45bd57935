"""MCP servers of an agent, asked by the worker, in the same way for every harness. No environment reaches them."""

from typing import TYPE_CHECKING

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import McpAccess
from footplate.harness import loading

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers


async def servers_of(config: ResolvedConfig, access: McpAccess) -> "Servers | None":
    """None for an agent that has none. The library takes a second to load: once, when somebody needs it."""
    if not config.mcp_servers:
        return None
    module = await loading.module("footplate.harness.mcp.servers")
    made: Servers = module.Servers(config, access)
    return made
