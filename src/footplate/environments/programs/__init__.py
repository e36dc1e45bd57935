"""Programs that run outside the worker: the guardian, and the init process of a sandbox or container."""
