"""The official SDKs as users have them: Python, synchronous and asynchronous, and TypeScript."""
