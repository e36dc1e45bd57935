"""Checks how a worker behaves on machines that cannot provide its backend."""
