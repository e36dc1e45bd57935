"""Runs hooks of each kind. An error of a hook raises no exception: the output describes the failure."""
