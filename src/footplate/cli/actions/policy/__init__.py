"""Implementations of `footplate policy` and its subcommands."""
