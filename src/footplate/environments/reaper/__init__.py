"""Proves that whatever of ours is on this host belongs to a living turn, and removes what does not."""
