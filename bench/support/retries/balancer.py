"""A small TCP load balancer: one address in front of API replicas that are killed.

A new connection goes to the first replica in the list that accepts it. When a replica dies, its clients' connections
break too, as they do with a dead server.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from footplate.stack.free_ports import LOOPBACK, find_free_port

_CHUNK: Final = 64 * 1024


class Balancer:
    def __init__(self) -> None:
        self._port = find_free_port()
        self._targets: Sequence[int] = ()
        self._open: dict[asyncio.StreamWriter, int] = {}
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for client in tuple(self._open):
            client.close()

    def turn_to(self, *ports: int) -> None:
        """Sends new connections to the first of these ports that accepts. Closes connections to any but the first."""
        self._targets = ports
        for client, port in tuple(self._open.items()):
            if port != ports[0]:
                client.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for port in self._targets:
                with suppress(ConnectionError):
                    upstream = await asyncio.open_connection(LOOPBACK, port)
                    self._open[writer] = port
                    await _join((reader, writer), upstream)
                    return
        finally:
            self._open.pop(writer, None)
            writer.close()


Side = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _join(client: Side, server: Side) -> None:
    """Copies both directions until either ends, then stops both."""
    pumps = [asyncio.create_task(_pump(client[0], server[1])), asyncio.create_task(_pump(server[0], client[1]))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        server[1].close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
