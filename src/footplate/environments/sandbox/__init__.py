"""The `sandbox` backend: runs all processes of a turn in a bubblewrap sandbox."""
