"""The metrics listener accepts a bounded number of connections, each for a bounded time."""

import socket
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from footplate.telemetry import limited_http_server
from footplate.telemetry.limited_http_server import LimitedServer, QuietHandler

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

pytestmark = pytest.mark.timing

REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def _serve(_environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    start("200 OK", [])
    return [b"fine"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LimitedServer]:
    monkeypatch.setattr(limited_http_server, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(limited_http_server, "CONNECTION_SECONDS", 0.2)
    running = LimitedServer(("127.0.0.1", 0), QuietHandler)
    running.set_app(_serve)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def _exchange(server: LimitedServer) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client:
        client.sendall(REQUEST)
        received = b""
        try:
            while piece := client.recv(4096):
                received += piece
        except ConnectionError:
            pass
        return received


def test_silent_connections_are_closed_for_new_ones(server: LimitedServer) -> None:
    assert b"fine" in _exchange(server)
    silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(3)]
    served = [_exchange(server)]
    while b"fine" not in served[-1] and len(served) < 10_000:
        served.append(_exchange(server))
    assert served[0] == b""
    assert b"fine" in served[-1]
    for client in silent:
        client.close()
