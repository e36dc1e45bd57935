"""Draws tables, calls, diffs and prompts on the terminal."""
