"""Ports: interfaces that the API, the engine and the harnesses use, and that other packages implement."""
