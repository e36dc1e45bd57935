"""What `claude-5` looks at: the history that a fork tells the model, and what a fork costs."""
