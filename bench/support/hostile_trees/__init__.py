"""Workspaces whose agent works against the host, and the host's own work on them."""
