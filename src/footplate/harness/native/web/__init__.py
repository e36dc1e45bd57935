"""The tools that reach the web from the worker itself: one page, or one search."""
