"""Claims about sandboxes, containers and the commands that run inside them."""
