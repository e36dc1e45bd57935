"""Machines that have a backend, and machines that cannot: what the product does on each."""
