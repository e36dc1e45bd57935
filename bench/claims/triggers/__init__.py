"""Claims about what starts sessions without a person, and about what reports their events."""
