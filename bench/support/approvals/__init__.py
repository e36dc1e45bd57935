"""Calls that people are asked about, while whoever takes part in them is killed."""
