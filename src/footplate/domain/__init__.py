"""The domain model: data types, events, decisions and ports (interfaces). It does no I/O and imports no other package
of Footplate.
"""
