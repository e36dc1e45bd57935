"""Live streaming of session events: publishes them to Redis Streams, and sends them from the API to clients.

The log in PostgreSQL is the only source of truth. If Redis loses its data, clients lose previews and receive events at
most two seconds late.
"""
