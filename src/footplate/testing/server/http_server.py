"""A uvicorn server for use in an existing event loop.

It installs no signal handlers, and does not log connections that a script closes on purpose.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD_BYTES: Final = 256 * 1024
_HEAD_SECONDS: Final = 30.0
_MAX_CONNECTIONS: Final = 10_000


class QuietProtocol(HttpToolsProtocol):
    """Sends the errors that uvicorn reports for scripted cuts to a separate, silent logger."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("footplate.testing.http")
        self.logger.setLevel(logging.CRITICAL)
        self._head_bytes = 0
        self._in_head = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > _MAX_CONNECTIONS:
            transport.abort()
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._head_timer is not None:
            self._head_timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > _HEAD_BYTES:
            self.transport.abort()
        self._watch_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def _watch_head(self) -> None:
        """Closes a connection whose next request head does not complete in time. uvicorn handles silent connections."""
        responding = self.cycle is not None and not self.cycle.response_complete
        waits = self._in_head and not responding and self.timeout_keep_alive_task is None
        if not waits and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        elif waits and self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)


class LoopServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signal handling to the owner of the event loop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def create_server(app: Any) -> LoopServer:
    return LoopServer(
        uvicorn.Config(
            app,
            http=QuietProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            # Longer than any client's timeout, so that a connection does not close just as a client reuses it.
            timeout_keep_alive=120,
            timeout_graceful_shutdown=1,
        )
    )
