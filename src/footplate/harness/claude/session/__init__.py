"""The Claude Code process of a turn: its options, its connection and its MCP servers."""
