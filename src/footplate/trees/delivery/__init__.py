"""Delivery of a session's work: merge, push, bundle and patch."""
