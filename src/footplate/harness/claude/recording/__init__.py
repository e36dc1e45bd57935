"""Records the messages of Claude Code as events, usage and conversation entries."""
