"""Fills a database with many turns for usage reports, and with many sessions to archive."""
