"""Records the subagents of Claude Code as threads of a session, and tracks the tool calls of each thread."""
