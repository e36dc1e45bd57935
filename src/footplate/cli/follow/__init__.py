"""Follows a running session: events, approvals and reconnects."""
