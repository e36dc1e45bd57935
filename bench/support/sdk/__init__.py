"""Runs the official SDKs as users install them: Python, synchronous and asynchronous, and TypeScript."""
