"""Organisations and their authenticated callers."""
