"""Session archives in the object store: format, reading and writing."""
