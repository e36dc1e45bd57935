"""Claims about sandboxes, containers and what runs inside them."""
