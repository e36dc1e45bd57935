"""Streamed responses: server-sent events, WebSocket messages, and bytes from a resource that must stay open."""
