"""Finds processes, control groups and directories on this host whose turn or session has ended, and removes them."""
