"""The repositories of projects: their sources, their mirrors on this host, and their instructions for agents."""
