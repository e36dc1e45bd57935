"""Warm harness processes keep running between turns, or start before the first turn, so that turns start faster."""
