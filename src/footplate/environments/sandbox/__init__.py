"""The `sandbox` backend: bubblewrap around all that a turn runs."""
