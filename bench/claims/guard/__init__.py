"""Claims about attacks on a running server."""
