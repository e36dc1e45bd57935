"""Wire models of sessions and of their events, turns, threads, forks, diffs, deliveries and transcripts."""
