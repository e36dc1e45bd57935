"""The log on a real PostgreSQL."""
