"""Rejects HTTP requests that a web page of another site makes through the user's browser. The API, the metrics server
and the model proxy use this check.

- DNS rebinding: a page points its own host name at 127.0.0.1. The `Host` header must therefore be a loopback name, an
  IP address, or a name that the operator lists.
- Cross-origin requests, including WebSockets: the `Origin` header, if present, must be the server's own origin or one
  that the operator lists.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from footplate.domain.errors import Forbidden

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ANY: Final = "*"
_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
_MAX_SHOWN_CHARACTERS: Final = 200


class ForeignRequest(Forbidden):
    """The request names a host that is not this server's, or comes from a web page of another origin."""

    code = "foreign_request"


@dataclass(frozen=True, slots=True)
class RequestGuard:
    hosts: frozenset[str] = frozenset()
    """Names of this server in addition to loopback names: `footplate.example.com`, `*.example.com`, or `*` for any."""
    origins: frozenset[str] = frozenset()
    """Origins of web pages that may call this server: `https://app.example.com`, or `*` for any."""

    @classmethod
    def parse(cls, hosts: str = "", origins: str = "") -> "RequestGuard":
        """Parse comma-separated lists."""
        return cls(frozenset(_entries(hosts)), frozenset(entry.rstrip("/") for entry in _entries(origins)))

    def check(self, headers: Iterable[tuple[str, str]], *, allows_links: bool = False) -> None:
        """Raise `ForeignRequest` if the request is not allowed. Header names must be in lower case.

        `allows_links`: the request shows a page, so a person may come to it by a link on a page of another site.
        """
        found: dict[str, str] = {}
        for name, value in headers:
            if name in {"host", "origin"} and found.setdefault(name, value) != value:
                raise ForeignRequest(f"The request has more than one `{name}` header.", help_text="Send only one.")
            found[name] = value
        host = found.get("host", "").strip().lower()
        if host and not self._is_own_host(host):
            raise ForeignRequest(
                f"The `Host` header names {host[:_MAX_SHOWN_CHARACTERS]!r}, which is not a known name of this server.",
                help_text="If this name belongs to the server, add it to FOOTPLATE_ALLOWED_HOSTS.",
            )
        origin = found.get("origin", "").strip().lower()
        if origin and not self._is_allowed_origin(origin, host):
            raise ForeignRequest(
                f"Web pages from {origin[:_MAX_SHOWN_CHARACTERS]!r} are not allowed to call this server.",
                help_text="If they should be allowed, add this origin to FOOTPLATE_ALLOWED_ORIGINS.",
            )
        if allows_links and (found.get("sec-fetch-mode"), found.get("sec-fetch-dest")) == ("navigate", "document"):
            return
        # A browser may send no origin with requests for images, scripts and forms.
        if not origin and ANY not in self.origins and found.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
            raise ForeignRequest(
                "A web page from another site sent this request.",
                help_text="Open the address directly in the browser, or call it from a program.",
            )

    def _is_own_host(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if ANY in self.hosts or name == "localhost" or name.endswith(".localhost") or _is_address(name):
            return True
        return name in self.hosts or any(entry.startswith("*.") and name.endswith(entry[1:]) for entry in self.hosts)

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if ANY in self.origins or origin in self.origins:
            return True
        scheme, _, authority = origin.partition("://")
        if scheme not in {"http", "https"} or not host:
            return False
        default_port = {"http": ":80", "https": ":443"}[scheme]
        return authority.removesuffix(default_port) == host.removesuffix(default_port)


class GuardedApp:
    """Wraps an ASGI application with a `RequestGuard`."""

    def __init__(self, app: App, guard: RequestGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            try:
                headers = (
                    (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
                )
                self._guard.check(headers, allows_links=self.allows_links(scope))
            except ForeignRequest as error:
                await self.refuse(error, scope, send)
                return
        await self._app(scope, receive, send)

    def allows_links(self, scope: Scope) -> bool:  # noqa: ARG002 - used by subclasses
        """Return whether a page of another site may link to this path."""
        return False

    def build_response(self, error: ForeignRequest, scope: Scope) -> tuple[list[tuple[bytes, bytes]], bytes]:  # noqa: ARG002 - used by subclasses
        """Return the headers and the body of the refusal."""
        body = {"type": "error", "error": {"type": "permission_error", "message": error.advice}}
        return [(b"content-type", b"application/json")], json.dumps(body).encode()

    async def refuse(self, error: ForeignRequest, scope: Scope, send: Send) -> None:
        headers, body = self.build_response(error, scope)
        kind = "http.response"
        if scope["type"] == "websocket":
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": 1008})
                return
            kind = "websocket.http.response"
        length = (b"content-length", str(len(body)).encode())
        await send({"type": f"{kind}.start", "status": error.status, "headers": [*headers, length]})
        await send({"type": f"{kind}.body", "body": body})


def _entries(text: str) -> Iterable[str]:
    return (entry.strip().lower() for entry in text.split(",") if entry.strip())


def _host_name(host: str) -> str | None:
    """Return the host name without the port. None: no browser would send this."""
    try:
        split = urlsplit(f"//{host}")
        _ = split.port
    except ValueError:
        return None
    if split.username is not None or split.path or split.query or split.fragment:
        return None
    return (split.hostname or "").rstrip(".") or None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
