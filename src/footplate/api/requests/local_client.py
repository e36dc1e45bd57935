"""Checks that a request comes from a program on this machine, directly and by a loopback name."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from footplate.domain.errors import Forbidden

_PROXY_HEADERS: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")


class NotLocal(Forbidden):
    """The request does not come from this machine."""

    code = "not_local"


def check_is_local(connection: HTTPConnection) -> None:
    """Raises `NotLocal` for a request of another machine, or one that a proxy has forwarded."""
    try:
        name = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
    except ValueError:
        name = ""
    client = connection.client.host if connection.client is not None else ""
    is_forwarded = any(header in connection.headers for header in _PROXY_HEADERS)
    if is_forwarded or not is_loopback(client) or not (name == "localhost" or is_loopback(name)):
        raise NotLocal(
            "One-time codes work only on the machine of the server, without a proxy, at a loopback address.",
            help_text="Sign in with an API key, or open http://127.0.0.1 with the port of the server on its machine.",
        )


def is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
