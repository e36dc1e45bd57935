"""Runs turns: Temporal workflows and activities, the worker, and the resources of a running turn."""
