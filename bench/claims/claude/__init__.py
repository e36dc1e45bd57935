"""Claims about sessions that run Claude Code."""
