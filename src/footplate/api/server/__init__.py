"""uvicorn's HTTP and WebSocket protocols with limits on connections, headers and slow clients."""
