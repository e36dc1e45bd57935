"""The `sandbox` backend: runs all processes of a turn inside bubblewrap."""
