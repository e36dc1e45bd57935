"""Workspaces in which the agent attacks the host through git, and the host's own operations on them."""
