"""Runs the same scenarios with every provider's wire format and compares the resulting events."""
