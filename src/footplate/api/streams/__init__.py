"""Streamed responses: server-sent events, WebSocket messages and bytes of open resources."""
