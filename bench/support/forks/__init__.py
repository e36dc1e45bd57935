"""Parts of `claude-5`: the history that the model receives in a fork, and the cost of a fork."""
