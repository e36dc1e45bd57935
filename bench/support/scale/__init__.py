"""What the claim fast-7 is made of: many turns to add up, and many sessions to archive."""
