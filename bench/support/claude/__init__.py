"""Parts of the claims about the claude harness: the real CLI, in a sandbox, with a scripted model."""
