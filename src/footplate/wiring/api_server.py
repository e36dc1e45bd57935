"""Serves the API: the settings of uvicorn, its socket, and the end of streams on shutdown."""

import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from footplate.api.server.http_protocol import LimitedConfig
from footplate.config import Settings
from footplate.domain.errors import Conflict

_SEND_BUFFER: Final = 128 * 1024
_CLIENT_ERRORS: Final = (
    "ASGI callable returned without completing handshake",
    "Invalid HTTP request received",
    "Invalid UTF-8 sequence",
    "Unsupported upgrade request",
)
_MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Maximum size of a message from a WebSocket client. Clients have nothing to send; this only allows an error reply."""


class ApiServer(uvicorn.Server):
    """Ends its streams on shutdown, so that clients reconnect to another replica immediately, not after a timeout."""

    def __init__(self, settings: Settings, app: FastAPI, end_streams: Callable[[], None]) -> None:
        config = LimitedConfig(
            app,
            settings.request_limits,
            host=settings.host,
            port=settings.port,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            loop="uvloop",
            ws_max_size=_MAX_MESSAGE_BYTES,
            ws_ping_interval=settings.keepalive,
            ws_ping_timeout=2 * settings.keepalive,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=3,
        )
        super().__init__(config)
        self._end_streams = end_streams

    async def run_until_signal(self) -> None:
        logging.getLogger("uvicorn.error").addFilter(_is_server_problem)
        logging.getLogger("python_multipart").setLevel(logging.ERROR)  # malformed forms are also the client's mistake
        await self.serve(sockets=[bind_socket(self.config.host, self.config.port)])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end_streams()
        super().handle_exit(sig, frame)


def _is_server_problem(record: logging.LogRecord) -> bool:
    """Filter out log records about mistakes of clients, which are not errors of the server."""
    return not record.getMessage().startswith(_CLIENT_ERRORS)


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind the socket. Connections inherit its options: packets are sent immediately, and the send buffer is small, so
    a client that does not read cannot make the kernel buffer megabytes.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Conflict(
            f"The API cannot listen on {host}:{port}: {reason}.",
            help_text="Stop the program that uses this address, or choose another with --host and --port, or with "
            "FOOTPLATE_HOST and FOOTPLATE_PORT.",
        ) from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return listener
