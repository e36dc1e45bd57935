"""Runs a turn's commands in an isolated environment, and ends all of its processes with the turn."""
