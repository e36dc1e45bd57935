"""uvicorn, tamed for use inside somebody else's event loop: no signal handlers, no log lines about scripted cuts."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class QuietProtocol(HttpToolsProtocol):
    """An answer that is cut on purpose is an application error to uvicorn; it goes to a logger of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("footplate.testing.http")
        self.logger.setLevel(logging.CRITICAL)


class LoopServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to whoever owns the loop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def server(app: Any) -> LoopServer:
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
            # Longer than any client's own: a connection must not close just as a client reuses it.
            timeout_keep_alive=120,
            timeout_graceful_shutdown=1,
        )
    )
