"""`GET /metrics`, on an address of its own: it is the operator's, and needs no key because nobody else reaches it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from wsgiref.simple_server import WSGIServer

import structlog

from footplate.domain.errors import InvalidRequest
from footplate.telemetry.limited_server import LimitedServer, QuietHandler

OFF: Final = "off"
LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = range(65536)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    must: bool = True
    """The operator asked for it: not getting it is an error. Otherwise it is a line in the log."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse(text: str | None, *, default_port: int | None) -> Address | None:
    """`host:port`, or a port alone, which is then on loopback. `off`, or nothing and no default: None."""
    if not text:
        return Address(LOOPBACK, default_port, must=False) if default_port is not None else None
    if text == OFF:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) not in _PORTS:
        raise InvalidRequest(
            f"FOOTPLATE_METRICS_ADDRESS is {text!r}, which is no address.",
            field="FOOTPLATE_METRICS_ADDRESS",
            help_text="Write host:port, a port alone (on loopback), or off.",
        )
    return Address(host.strip("[]") or LOOPBACK, int(port))


@contextmanager
def served(address: Address | None) -> Iterator[None]:
    if address is None:
        yield
        return
    try:
        server = _start(address)
    except OSError as error:
        if address.must:
            raise InvalidRequest(
                f"Metrics cannot be served on {address}: {error}.",
                field="FOOTPLATE_METRICS_ADDRESS",
                help_text="Choose another FOOTPLATE_METRICS_ADDRESS, or off.",
            ) from error
        log.warning(
            "metrics are not served; choose another FOOTPLATE_METRICS_ADDRESS, or off",
            action="metrics.not_served",
            address=str(address),
            reason=str(error),
        )
        yield
        return
    log.info("metrics are served", action="metrics.served", address=f"{address.host}:{server.server_port}")
    try:
        yield
    finally:
        # It looks up twice a second to see whether it is to end; nobody waits for that.
        threading.Thread(target=_close, args=(server,), daemon=True).start()


def _start(address: Address) -> WSGIServer:
    from prometheus_client import make_wsgi_app

    from footplate.telemetry.metrics import REGISTRY

    class Server(LimitedServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

    server = Server((address.host, address.port), QuietHandler)
    server.set_app(make_wsgi_app(REGISTRY))
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def _close(server: WSGIServer) -> None:
    server.shutdown()
    server.server_close()
