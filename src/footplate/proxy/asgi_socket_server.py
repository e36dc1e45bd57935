"""Serves an ASGI application on sockets that are opened and closed while the worker runs. It uses uvicorn's protocol
without uvicorn's server.

A turn's sandbox or container can have a socket of its own, which is opened and closed with the turn's environment.

The client may be an untrusted process in a sandbox. Three limits therefore apply: the size of the request head
(enforced by h11), the time to send it, and the number of connections. Connections use file descriptors, which all turns
of the worker share.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

LOOPBACK: Final = "127.0.0.1"
_KEEP_ALIVE_SECONDS: Final = 120
"""Seconds. Longer than any client's own limit, so that a connection is not closed just as a client reuses it."""
_HEAD_SECONDS: Final = 30.0
_BACKLOG: Final = 128


class _QuietProtocol(H11Protocol):
    """Does not log client errors and responses that are cut on purpose."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("footplate.proxy.http")
        self.logger.setLevel(logging.CRITICAL)
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._head_timer is not None:
            self._head_timer.cancel()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def _watch_head(self) -> None:
        """Closes a connection whose next request head is not completed in time. uvicorn handles connections that are
        silent.
        """
        is_waiting = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not is_waiting and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        elif is_waiting and self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)


class _RejectingProtocol(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class AppServer:
    """Serves an application on one socket, from `serve` to `close`."""

    def __init__(self, app: Callable[..., Any], state: Mapping[str, object], max_connections: int) -> None:
        self._config = uvicorn.Config(
            app,
            http=_QuietProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._connections = ServerState()
        self._state = dict(state)
        self._max_connections = max_connections
        self._server: asyncio.Server | None = None

    async def serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        create_server = loop.create_unix_server if listener.family == socket.AF_UNIX else loop.create_server
        self._server = await create_server(self._protocol, sock=listener, backlog=_BACKLOG)

    def close(self) -> None:
        """Closes immediately and cuts all connections."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.connections):
            connection.transport.abort()

    def _protocol(self) -> asyncio.Protocol:
        if len(self._connections.connections) >= self._max_connections:
            return _RejectingProtocol()
        return _QuietProtocol(self._config, self._connections, self._state)


def listen_on_loopback() -> socket.socket:
    listener = socket.create_server((LOOPBACK, 0))
    # Connections inherit the option. asyncio sets it only on sockets that name their protocol, which this one does not.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_at_path(path: Path) -> socket.socket:
    """Creates a listening socket at a path. Any user who can access its directory may connect.

    It is bound through the directory's descriptor, because a socket path is limited to 107 bytes.
    """
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        path.chmod(0o666)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener
