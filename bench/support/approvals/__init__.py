"""Sessions whose calls need approval, while the processes that take part are killed."""
