"""A host is lost in the middle of a turn, with all that it had on its disk."""
