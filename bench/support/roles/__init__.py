"""Attempts to weaken the permission rules of a project, by every route and role."""
