"""The HTTP API: routes, wire models and authentication. It reaches the database, the event streams and other services
through the interfaces (ports) in `footplate.domain`.
"""
