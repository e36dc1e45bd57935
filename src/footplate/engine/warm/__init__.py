"""Warm harness processes, which keep running between turns or are started before the first turn, so that turns start
faster.
"""
