"""Runs many stream listeners in one process and counts the frames that arrive.

Run it as a module with the arguments HOST, PORT, PATH, COUNT and PIECES, and the API key in LISTENER_KEY. It prints a
line when all are connected, and a line of JSON when each has its pieces or nothing has arrived for five seconds.
"""

import asyncio
import os
import sys
import time
from functools import partial
from typing import Final, cast

import orjson
import uvloop

from bench.support.speed.fan_out.delta_frames import EVENT, PIECE

READY: Final = "listeners ready"
_SILENCE_SECONDS: Final = 5.0


class Listener(asyncio.Protocol):
    def __init__(self, request: bytes, pieces: int) -> None:
        self._request = request
        self._wanted = pieces
        self._counts = {PIECE.encode(): 0, EVENT: 0}
        self._buffers = dict.fromkeys(self._counts, b"")
        self.connected = asyncio.Event()
        self.done = asyncio.Event()
        self.first = self.last = 0.0

    @property
    def pieces(self) -> int:
        return self._counts[PIECE.encode()]

    @property
    def frames(self) -> int:
        return self._counts[EVENT]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.WriteTransport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.connected.is_set():
            if b" 200 " not in data:
                sys.exit(f"a listener was refused: {data!r}")
            self.connected.set()
        for mark in self._counts:
            joined = self._buffers[mark] + data
            self._counts[mark] += joined.count(mark)
            self._buffers[mark] = joined[1 - len(mark) :]
        if PIECE.encode() in data or EVENT in data:
            self.last = time.time()
            self.first = self.first or self.last
        if self.pieces >= self._wanted:
            self.done.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self.done.set()


async def _listen(host: str, port: int, path: str, count: int, pieces: int) -> None:
    key = os.environ.get("LISTENER_KEY", "")
    request = f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {key}\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    listeners = [Listener(request, pieces) for _ in range(count)]
    for listener in listeners:
        await loop.create_connection(partial(_get_protocol, listener), host, port)
        await listener.connected.wait()
    print(READY, flush=True)
    await asyncio.wait([asyncio.create_task(_finished(listener)) for listener in listeners])
    report = [(one.pieces, one.frames, one.first, one.last) for one in listeners]
    print(orjson.dumps(report).decode(), flush=True)


def _get_protocol(listener: Listener) -> Listener:
    return listener


async def _finished(listener: Listener) -> None:
    while not listener.done.is_set():
        try:
            await asyncio.wait_for(listener.done.wait(), _SILENCE_SECONDS)
        except TimeoutError:
            if listener.last and time.time() - listener.last >= _SILENCE_SECONDS:
                return


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        host, port, path, count, pieces = sys.argv[1:]
        runner.run(_listen(host, int(port), path, int(count), int(pieces)))
