"""What the log records of files: snapshots, their differences, and deliveries."""
