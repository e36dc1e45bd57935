"""The live side against a real Redis."""
