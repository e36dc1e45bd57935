"""The live side: publishing to Redis Streams, the gap-free tail of each api process, and SSE encoding.

Nothing here is the truth. The log in PostgreSQL is; Redis may lose everything at any moment and costs only
previews and, for at most two seconds, time.
"""
