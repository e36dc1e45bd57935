"""Snapshots of working trees: finding changed files, storing, uploading and restoring them."""
