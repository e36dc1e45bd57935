"""Runs turns: Temporal workflows and activities, the worker, and everything that a turn needs while it runs."""
