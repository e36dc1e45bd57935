"""Integration tests of the harnesses."""
