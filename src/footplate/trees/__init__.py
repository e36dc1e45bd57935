"""Working trees: mirrors of projects, a tree for each session, snapshots and diffs. All of it is git's own plumbing."""
