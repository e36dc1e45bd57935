"""Measures speed against a bare baseline in the same run: latency, rates, sandboxes, containers and the model proxy."""
