"""The `docker` backend: runs all processes of a turn in a new container, or in a container that the operator names."""
