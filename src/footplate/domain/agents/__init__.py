"""Configuration of agents, their environments and their MCP servers."""
