"""Checks that a request with a cookie comes from a page of this server.

This is stricter than the guard of all requests: pages of the origins that the operator allows can call the server with
an API key, but not with a person's cookie.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from footplate.api.service_container import get_services
from footplate.domain.network.host_and_origin_check import ForeignRequest

_OWN_SITES: Final = frozenset({"same-origin", "none"})
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_MAX_SHOWN: Final = 200


def check_own_origin(connection: HTTPConnection, *, required: bool) -> None:
    """Raises `ForeignRequest` unless the page that sent the request is of this server. `required`: the request must
    name its origin, as browsers do for every request that is not a plain GET.
    """
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    if site is not None and site.lower() not in _OWN_SITES:
        raise _foreign(f"the browser reports that it is {site[:_MAX_SHOWN]!r}")
    if origin is None:
        if required:
            raise _foreign("it has no `Origin` header")
    elif not is_own_origin(connection, origin):
        raise _foreign(f"its origin is {origin[:_MAX_SHOWN]!r}")


def is_own_origin(connection: HTTPConnection, origin: str) -> bool:
    scheme, _, authority = origin.strip().lower().partition("://")
    if scheme not in _DEFAULT_PORTS or not authority:
        return False
    host = connection.headers.get("host", "").strip().lower()
    default_port = _DEFAULT_PORTS[scheme]
    if authority.removesuffix(default_port) != host.removesuffix(default_port):
        return False
    # Behind a reverse proxy that ends TLS, the request itself looks like plain HTTP.
    return scheme == "https" or not is_served_by_https(connection)


def is_served_by_https(connection: HTTPConnection) -> bool:
    """Returns whether the browser reached this server by HTTPS, as far as the request and the settings say."""
    if connection.scope["scheme"] in {"https", "wss"}:
        return True
    public_url = get_services(connection).public_url
    if public_url is not None and urlsplit(public_url).netloc == connection.headers.get("host", "").strip().lower():
        return public_url.startswith("https://")
    return False


def own_base_url(connection: HTTPConnection) -> str:
    """Returns the address of this server for browsers, without a slash at the end."""
    public_url = get_services(connection).public_url
    if public_url is not None:
        return public_url.rstrip("/")
    scheme = "https" if is_served_by_https(connection) else "http"
    return f"{scheme}://{connection.headers.get('host', '')}"


def _foreign(reason: str) -> ForeignRequest:
    return ForeignRequest(
        f"A request with the cookie of a browser session must come from a page of this server: {reason}.",
        help_text="Use the dashboard of this server, or an API key. A reverse proxy must pass on the `Host` header.",
    )
