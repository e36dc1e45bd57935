"""Claims about working trees: snapshots, diffs, forks, merges, garbage collection."""
