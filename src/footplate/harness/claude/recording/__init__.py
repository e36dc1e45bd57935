"""Records the messages of Claude Code in the log, as events, token usage and conversation entries."""
