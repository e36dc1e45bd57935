"""Counts the cost of one turn: statements, Redis commands, history events, rows and started processes."""
