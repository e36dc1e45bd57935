"""The HTTP server of the scripted model: its ASGI application, the playback of replies, and the journal of requests."""
