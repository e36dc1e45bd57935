"""Harness processes that stay warm after a turn or are started before one."""
