"""Leases of workers and of writers."""
