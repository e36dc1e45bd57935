"""Displaying, truncating and matching text."""
