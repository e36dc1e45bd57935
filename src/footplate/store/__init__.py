"""PostgreSQL and the object store: the log, the queue, conversations, agents, keys. The only truth."""
