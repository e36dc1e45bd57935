"""Working trees of sessions: mirrors of projects, checkouts, snapshots, diffs and delivery, all based on git."""
