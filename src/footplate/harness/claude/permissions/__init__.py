"""Permission decisions for the tool calls of Claude Code: evaluation, approvals and calls that wait for the client."""
