"""Tests event streams with cut connections, lost publishes, clients that never read, and clients that join late."""
