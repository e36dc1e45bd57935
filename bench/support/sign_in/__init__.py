"""Identity providers and browsers for tests and claims about signing in."""
