"""The HTTP side: routes, wire models, authentication. Everything behind it is a port of `domain.services`."""
