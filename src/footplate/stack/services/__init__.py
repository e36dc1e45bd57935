"""The services that the stack can start as child processes, and their base class."""
