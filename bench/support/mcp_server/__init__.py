"""A real MCP server in its own process, built with the official MCP library, for claims and tests."""
