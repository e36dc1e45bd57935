"""Analyses individual programs: which of their options write files or run commands, and which of their arguments are
files.
"""
