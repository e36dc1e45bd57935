"""Archives of inactive sessions in the object store: file format, reading and writing."""
