"""A model of a session's queue, and clients that change a queue at random."""
