"""Temporal workflows, activities, the worker and the client that wakes sessions."""
