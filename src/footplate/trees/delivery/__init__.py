"""Delivery of a session's work: merge into a branch, push of a branch, or export as a bundle."""
