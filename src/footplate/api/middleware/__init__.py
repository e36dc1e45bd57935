"""ASGI middleware and exception handlers: request ids, telemetry, origin checks and error responses."""
