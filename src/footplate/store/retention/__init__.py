"""Archiving, expiry, deletion and garbage collection of session data."""
