"""Attacks on a running server, one module each: `guard-1` runs them."""
