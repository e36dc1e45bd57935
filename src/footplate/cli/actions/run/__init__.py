"""Implementation of `footplate run`: starts a session, builds the message and selects the tools."""
