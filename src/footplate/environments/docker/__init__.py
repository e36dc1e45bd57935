"""The `docker` environment: a container around all that a turn does, or one that is named."""
