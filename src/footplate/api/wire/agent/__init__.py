"""Wire models of agents and their tools."""
