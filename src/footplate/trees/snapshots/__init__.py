"""Snapshots of working trees: scanning, storing, uploading and restoring."""
