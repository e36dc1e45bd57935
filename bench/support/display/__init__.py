"""Parts of `guard-4`: hostile inputs on every screen of the command line, and a parser that recovers them."""
