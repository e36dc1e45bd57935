"""Pipeline files of `footplate queue run`."""
