"""Runs one turn: its log, files, attachments, hooks, approvals and time limit."""
