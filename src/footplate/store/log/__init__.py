"""The session log: claims, turns, inputs, forks and file snapshots."""
