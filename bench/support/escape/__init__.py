"""Attempts to get out of an environment, each executed for real and judged from outside."""
