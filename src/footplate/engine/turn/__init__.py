"""Running one turn."""
