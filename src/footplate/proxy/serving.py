"""Sockets that the proxy is served on: uvicorn's protocol without its server, because they come and go with turns.

A sandbox is at the other end of some of them. So the size of a head is bounded (h11 sees to that, and httptools would
not), and so are its time and the number of connections: they are descriptors of the worker, which all its turns need.
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
_KEEP_ALIVE: Final = 120
"""Longer than any client's own: a connection must not close just as a client reuses it."""
_HEAD_SECONDS: Final = 30.0
_BACKLOG: Final = 128


class _Quiet(H11Protocol):
    """What a client does wrong, and an answer that is cut on purpose, is no news for the worker's log."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("footplate.proxy.http")
        self.logger.setLevel(logging.CRITICAL)
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
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
        """Close a connection whose next request does not become complete. uvicorn watches one that is silent."""
        waits = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not waits and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        elif waits and self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)


class _TooMany(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Served:
    """An application on one socket, from `serve` to `close`."""

    def __init__(self, app: Callable[..., Any], state: Mapping[str, object], most: int) -> None:
        self._config = uvicorn.Config(
            app,
            http=_Quiet,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
        )
        self._connections = ServerState()
        self._state = dict(state)
        self._most = most
        self._server: asyncio.Server | None = None

    async def serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        make = loop.create_unix_server if listener.family == socket.AF_UNIX else loop.create_server
        self._server = await make(self._protocol, sock=listener, backlog=_BACKLOG)

    def close(self) -> None:
        """At once: who is connected is cut off."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.connections):
            connection.transport.abort()

    def _protocol(self) -> asyncio.Protocol:
        if len(self._connections.connections) >= self._most:
            return _TooMany()
        return _Quiet(self._config, self._connections, self._state)


def on_loopback() -> socket.socket:
    listener = socket.create_server((LOOPBACK, 0))
    # Connections inherit it. asyncio sets it itself, but not where a socket does not name its protocol, as here.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def at_path(path: Path) -> socket.socket:
    """Anybody who can reach it may connect: who can is decided by the directory that it is in.

    Bound by way of its directory's descriptor, because a socket's path may have no more than 107 bytes.
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
