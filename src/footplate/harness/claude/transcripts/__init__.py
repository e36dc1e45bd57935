"""Transcripts of Claude Code: reading, import and export."""
