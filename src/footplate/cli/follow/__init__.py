"""Follows a running session: shows its events, asks for approvals and reconnects."""
