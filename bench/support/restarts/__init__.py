"""Turns and terminals that must survive planned restarts of their workers."""
