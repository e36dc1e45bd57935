"""Diffs between snapshots."""
