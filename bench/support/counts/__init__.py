"""Counts what one turn costs: statements, Redis commands, history events, rows and started processes."""
