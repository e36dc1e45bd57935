"""Runs the previous version beside this one."""
