"""Unit tests of the harnesses."""
