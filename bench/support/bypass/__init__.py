"""Ways past a command rule, tried for real: the corpus, the tree that they are tried in, and what they did there."""
