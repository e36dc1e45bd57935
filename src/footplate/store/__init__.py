"""PostgreSQL and the object store: the session log, the queue, conversations, agents and API keys.

This is the single source of truth. All other state can be rebuilt from it.
"""
