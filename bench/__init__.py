"""Measurements and proofs: what the product claims, and the commands that show it."""
