"""Transcripts of Claude Code: parsing, import and export."""
