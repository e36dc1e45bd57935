"""Programs that run outside the worker: guardian, init process of a sandbox or container, death watch."""
