"""Stores the session log, the queue, conversations, agents and API keys in PostgreSQL and the object store.

All other state of Footplate can be rebuilt from this data.
"""
