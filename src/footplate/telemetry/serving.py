"""`GET /metrics`, on an address of its own, for the operator alone.

Every user of the machine reaches loopback, so a request has to bring a token, and a web page's request is refused.
"""

import hmac
import os
import secrets
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from wsgiref.simple_server import WSGIServer

import structlog

from footplate.domain.errors import InvalidRequest
from footplate.domain.request_guard import ForeignRequest, RequestGuard
from footplate.telemetry.limited_server import LimitedServer, QuietHandler

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

OFF: Final = "off"
OPEN: Final = "open"
"""Instead of a token: none is needed."""
_TOKEN_FILE: Final = "metrics-token"  # noqa: S105 - a file's name
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


def find_token(given: str | None, data_dir: Path) -> str | None:
    """What requests have to bring; None for nothing. Not given, it is in a file that the first process makes."""
    if given:
        return None if given == OPEN else given
    path = data_dir / _TOKEN_FILE
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w") as handle:
        handle.write(f"{secrets.token_hex(24)}\n")
    with suppress(FileExistsError):  # another process was first
        os.link(draft, path)
    draft.unlink()
    return path.read_text().strip()


def guarded(app: "WSGIApplication", token: str | None, guard: RequestGuard) -> "WSGIApplication":
    """Only for requests that no web page of another site sent, and that bring the token."""

    def serve(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        names = {"HTTP_HOST": "host", "HTTP_ORIGIN": "origin", "HTTP_SEC_FETCH_SITE": "sec-fetch-site"}
        try:
            guard.check((header, str(environ[key])) for key, header in names.items() if key in environ)
        except ForeignRequest as error:
            return _refuse(start, "403 Forbidden", error.advice)
        if token is not None and not _has_token(environ, token):
            return _refuse(
                start,
                "401 Unauthorized",
                "Metrics need a token: send `Authorization: Bearer TOKEN`. See docs/observability.md.",
            )
        return app(environ, start)

    return serve


def _has_token(environ: "WSGIEnvironment", token: str) -> bool:
    scheme, _, given = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _refuse(start: "StartResponse", status: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8"), ("WWW-Authenticate", "Bearer")])
    return [f"{text}\n".encode()]


def _start(address: Address, token: str | None, guard: RequestGuard) -> WSGIServer:
    from prometheus_client import make_wsgi_app

    from footplate.telemetry.metrics import REGISTRY

    class Server(LimitedServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

    server = Server((address.host, address.port), QuietHandler)
    server.set_app(guarded(make_wsgi_app(REGISTRY), token, guard))
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


@contextmanager
def served(address: Address | None, token: str | None, guard: RequestGuard | None = None) -> Iterator[None]:
    if address is None:
        yield
        return
    try:
        server = _start(address, token, guard or RequestGuard())
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


def _close(server: WSGIServer) -> None:
    server.shutdown()
    server.server_close()
