"""What is left of sessions and their forks when some of them were deleted, and nobody needs the rest."""
