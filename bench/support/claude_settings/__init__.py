"""Compares what Claude Code and the gate do with the same settings files and the same calls."""
