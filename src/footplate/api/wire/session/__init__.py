"""Wire models of sessions and everything that belongs to one."""
