"""Profiles: the servers that a user works with, and their API keys."""
