"""What `footplate run` does."""
