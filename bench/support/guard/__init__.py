"""Attacks on a running server, one module each: `guard-1` runs them against this checkout and an earlier one."""
