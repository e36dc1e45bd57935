"""Uploaded files, attachments, file snapshots and the delivery of a session's work."""
