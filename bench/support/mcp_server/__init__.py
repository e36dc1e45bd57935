"""A real MCP server, of the protocol's own library, in a process of its own: for proofs and tests."""
