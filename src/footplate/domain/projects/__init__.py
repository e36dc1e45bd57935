"""Projects, their rules and instructions, and the directories that sessions may write to."""
