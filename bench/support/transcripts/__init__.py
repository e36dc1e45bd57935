"""Creates transcripts with the plain Claude Code CLI, to import them into Footplate and export them again."""
