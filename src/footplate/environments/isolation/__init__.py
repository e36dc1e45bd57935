"""Isolation code that sandboxes and containers share: visible files, control groups, limits and sockets."""
