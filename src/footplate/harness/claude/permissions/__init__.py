"""Permission decisions for Claude Code's tool calls: hooks, approvals and pending calls."""
