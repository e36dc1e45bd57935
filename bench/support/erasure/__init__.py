"""Checks which data of sessions and their forks remains after some of them were deleted."""
