"""The HTTP side on in-memory twins of its ports."""
