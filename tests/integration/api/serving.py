"""Serves an API of the test's process on loopback, with the server of production."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from footplate.config import Settings
from footplate.domain.network.request_limits import RequestLimits
from footplate.stack.orphan_processes import wait_until
from footplate.wiring.api_server import ApiServer, bind_socket


@asynccontextmanager
async def serve_api(
    app: FastAPI, limits: RequestLimits | None = None, *, listener: socket.socket | None = None
) -> AsyncIterator[ApiServer]:
    server = ApiServer(Settings(**(limits or RequestLimits()).model_dump()), app, lambda: None)
    server.config.timeout_graceful_shutdown = 1
    serving = asyncio.create_task(server.serve(sockets=[listener or bind_socket("127.0.0.1", 0)]))

    async def started() -> bool:
        return server.started

    assert await wait_until(started, 30)
    yield server
    server.should_exit = True
    await serving


def get_port(server: ApiServer) -> int:
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port
