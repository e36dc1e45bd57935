"""A TCP load balancer of a few lines: one address in front of api replicas that die.

A new connection goes to the first replica of its list that takes it. When a replica dies its connections break for the
clients as well, which is what a client of a dead server sees.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from footplate.stack.ports import LOOPBACK, free_port

_CHUNK: Final = 64 * 1024


class Balancer:
    def __init__(self) -> None:
        self._port = free_port()
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
        """From now on connections go to these, the first that answers. Those to others than the first end."""
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
    """Both directions, until either ends; then neither goes on."""
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
