"""Where a turn's commands run, and the guardian that ends them with the turn."""
