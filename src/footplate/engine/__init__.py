"""Temporal decides that a turn happens: workflows, activities, the worker, and the client that wakes a session."""
