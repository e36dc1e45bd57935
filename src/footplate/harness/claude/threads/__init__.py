"""Subagents of Claude Code as threads of a session."""
