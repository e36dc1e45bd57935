"""What `guard-4` looks at: hostile inputs on every screen of the command line, and a parser that recovers them."""
