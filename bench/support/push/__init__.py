"""A push service on this machine, and the keys of browsers."""
