"""Attempts to escape from an environment, really executed and judged from outside."""
