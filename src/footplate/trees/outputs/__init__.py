"""Session outputs: files that an agent leaves for clients."""
