"""Compares the times of operations on an empty and on a full database, which is filled with copies of a session."""
