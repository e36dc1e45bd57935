"""Harnesses: what decides the next action of a turn. Each is found by its entry point, ours and others' alike."""
