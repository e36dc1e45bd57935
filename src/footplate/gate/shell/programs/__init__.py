"""Knowledge about individual programs: which of their options write files or run commands, and which arguments are
files.
"""
