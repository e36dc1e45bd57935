"""Working trees: project mirrors, one tree per session, snapshots and diffs, all built on git plumbing commands."""
