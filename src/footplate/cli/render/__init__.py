"""Prints tables, tool calls, diffs and prompts on the terminal."""
