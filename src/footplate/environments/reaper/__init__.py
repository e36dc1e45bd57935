"""Finds processes, control groups and directories on this host that belong to no living turn, and removes them."""
