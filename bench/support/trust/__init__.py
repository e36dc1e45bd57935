"""Proofs of what a repository may bring: repositories that try everything, and what came of it."""
