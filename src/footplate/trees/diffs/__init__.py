"""Diffs between two snapshots of a session's files."""
