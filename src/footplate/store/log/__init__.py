"""The session log in the database: claims, turns, inputs, forks and file snapshots."""
