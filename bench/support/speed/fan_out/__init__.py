"""Measures how fast one session's events reach many clients, against a plain broadcast."""
