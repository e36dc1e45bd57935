"""Shared parts of the claims about environments."""
