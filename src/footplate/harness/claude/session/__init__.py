"""Starts the Claude Code CLI for a turn and communicates with it: options, connection, hooks and MCP servers."""
