"""A threaded HTTP server that limits the number of connections and the duration of each connection."""

import socket
import time
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

MAX_CONNECTIONS: Final = 32
CONNECTION_SECONDS: Final = 30.0


class LimitedServer(ThreadingMixIn, WSGIServer):
    """Handles each connection in a thread. A new connection closes those that are overdue, and is refused if too many
    remain.
    """

    daemon_threads = True

    def __init__(self, *args: Any, **options: Any) -> None:
        self._connected_at: dict[socket.socket, float] = {}
        super().__init__(*args, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        now = time.monotonic()
        for connection, since in list(self._connected_at.items()):
            if now - since > CONNECTION_SECONDS:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if len(self._connected_at) >= MAX_CONNECTIONS:
            self.shutdown_request(request)
            return
        self._connected_at[request] = now
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connected_at.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores the error: a client disconnected early or sent no request."""


class QuietHandler(WSGIRequestHandler):
    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Logs nothing for a request."""
