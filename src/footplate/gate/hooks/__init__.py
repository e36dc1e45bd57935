"""Hooks: parses their configuration, runs them and interprets their output."""
