"""Checks traces and metrics with a real collector, and compares metrics with totals computed from the log."""
