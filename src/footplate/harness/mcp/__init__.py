"""MCP servers of an agent, asked by the worker, in the same way for every harness. No environment reaches them."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import McpAccess

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers


async def servers_of(config: ResolvedConfig, access: McpAccess) -> "Servers | None":
    """None for an agent that has none. The library takes a second to load: once, when somebody needs it, and in a
    thread, because other turns go on meanwhile.
    """
    if not config.mcp_servers:
        return None
    module = await asyncio.to_thread(import_module, "footplate.harness.mcp.servers")
    made: Servers = module.Servers(config, access)
    return made
