"""Serves `GET /metrics` on a separate address, for the operator only.

Every user of the machine can connect to a loopback address. A request therefore needs a token, and requests from web
pages are rejected.
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
from footplate.domain.network.host_and_origin_check import ForeignRequest, RequestGuard
from footplate.telemetry.limited_http_server import LimitedServer, QuietHandler

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

OFF: Final = "off"
OPEN_ACCESS: Final = "open"
"""Value of the token setting that disables authentication."""
_TOKEN_FILE: Final = "metrics-token"  # noqa: S105 - a file name
LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = range(65536)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    host: str
    port: int
    is_required: bool = True
    """True: the operator configured the address, so a failure is an error. False: a failure is only logged."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str | None, *, default_port: int | None) -> MetricsAddress | None:
    """Parses `host:port`, or a port on loopback. Returns None for `off`, or without a text and a default."""
    if not text:
        return MetricsAddress(LOOPBACK, default_port, is_required=False) if default_port is not None else None
    if text == OFF:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) not in _PORTS:
        raise InvalidRequest(
            f"FOOTPLATE_METRICS_ADDRESS is {text!r}, which is not a valid address.",
            field="FOOTPLATE_METRICS_ADDRESS",
            help_text="Use host:port, a port alone (on loopback), or off.",
        )
    return MetricsAddress(host.strip("[]") or LOOPBACK, int(port))


def find_token(configured: str | None, data_dir: Path) -> str | None:
    """Returns the token that requests must send, or None if none is required. If no token is configured, the first
    process creates a file with one.
    """
    if configured:
        return None if configured == OPEN_ACCESS else configured
    path = data_dir / _TOKEN_FILE
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w") as handle:
        handle.write(f"{secrets.token_hex(24)}\n")
    with suppress(FileExistsError):  # another process was faster
        os.link(draft, path)
    draft.unlink()
    return path.read_text().strip()


def guard_app(app: "WSGIApplication", token: str | None, guard: RequestGuard) -> "WSGIApplication":
    """Wraps an application: requests need the token and must not come from a web page of another site."""

    def serve(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        names = {"HTTP_HOST": "host", "HTTP_ORIGIN": "origin", "HTTP_SEC_FETCH_SITE": "sec-fetch-site"}
        try:
            guard.check((header, str(environ[key])) for key, header in names.items() if key in environ)
        except ForeignRequest as error:
            return _refuse_request(start, "403 Forbidden", error.advice)
        if token is not None and not _has_token(environ, token):
            return _refuse_request(
                start,
                "401 Unauthorized",
                "Metrics require a token. Send `Authorization: Bearer TOKEN`; see docs/observability.md.",
            )
        return app(environ, start)

    return serve


def _has_token(environ: "WSGIEnvironment", token: str) -> bool:
    scheme, _, sent_token = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent_token.strip().encode(), token.encode())


def _refuse_request(start: "StartResponse", status: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8"), ("WWW-Authenticate", "Bearer")])
    return [f"{text}\n".encode()]


def _start_server(address: MetricsAddress, token: str | None, guard: RequestGuard) -> WSGIServer:
    from prometheus_client import make_wsgi_app

    from footplate.telemetry.metrics import REGISTRY

    class Server(LimitedServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

    server = Server((address.host, address.port), QuietHandler)
    server.set_app(guard_app(make_wsgi_app(REGISTRY), token, guard))
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


@contextmanager
def serve_metrics(
    address: MetricsAddress | None, token: str | None, guard: RequestGuard | None = None
) -> Iterator[None]:
    if address is None:
        yield
        return
    try:
        server = _start_server(address, token, guard or RequestGuard())
    except OSError as error:
        if address.is_required:
            raise InvalidRequest(
                f"Metrics cannot be served on {address}: {error}.",
                field="FOOTPLATE_METRICS_ADDRESS",
                help_text="Set FOOTPLATE_METRICS_ADDRESS to another address, or to off.",
            ) from error
        log.warning(
            "metrics are not served; set FOOTPLATE_METRICS_ADDRESS to another address, or to off",
            action="metrics.not_served",
            address=str(address),
            reason=str(error),
        )
        yield
        return
    log.info("serving metrics", action="metrics.served", address=f"{address.host}:{server.server_port}")
    try:
        yield
    finally:
        # In the background, because the server checks for its shutdown only twice a second.
        threading.Thread(target=_close_server, args=(server,), daemon=True).start()


def _close_server(server: WSGIServer) -> None:
    server.shutdown()
    server.server_close()
