"""The `docker` backend: runs all processes of a turn in a new container, or in one that the operator names."""
