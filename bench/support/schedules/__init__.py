"""Helpers for the claim about schedules."""
