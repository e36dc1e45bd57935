"""Leases in the database: of workers, and of writers of a branch or directory."""
