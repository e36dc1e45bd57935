"""The parts of box-2: commands that do all they can to stay, how they end, and the search for what is left."""
