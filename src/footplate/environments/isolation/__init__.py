"""Parts of isolation that sandboxes and containers share: filesystem view, control groups, limits, sockets."""
