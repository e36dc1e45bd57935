"""Footplate: the open, self-hosted server for coding-agent sessions."""

__version__ = "0.2.0"
