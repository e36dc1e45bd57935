"""Claims about what starts sessions without a person."""
