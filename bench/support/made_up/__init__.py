"""Commands and rules that are made up: by a grammar that knows what they do, and by breaking others."""
