"""Live streaming: publishing to Redis Streams, the gap-free tail in each API process, and SSE encoding.

The log in PostgreSQL is the only source of truth. If Redis loses all its data, clients lose previews and receive events
at most two seconds late.
"""
