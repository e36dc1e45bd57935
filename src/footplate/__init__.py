"""Footplate: the open, self-hosted home for coding-agent sessions."""

__version__ = "0.1.0"
