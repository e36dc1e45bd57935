"""The services that the stack can start, and their base class."""
