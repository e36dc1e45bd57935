"""Runs the subagents of the `native` harness, each in a thread of the session with its own conversation."""
