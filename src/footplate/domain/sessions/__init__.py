"""Sessions, turns, threads and events."""
