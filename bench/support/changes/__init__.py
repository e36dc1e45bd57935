"""Random change sets of a working tree as plain values, and checks of the snapshots and diffs made of them."""
