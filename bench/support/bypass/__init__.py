"""Attempts to bypass command rules, really executed: the corpus, the tree they run in, and their effects."""
