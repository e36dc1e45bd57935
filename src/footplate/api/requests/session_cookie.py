"""Reads and writes the cookie of a browser session.

Over HTTPS its name starts with `__Host-`, so that no other host can set it. Over plain HTTP, which is only for the own
machine, the name contains the port, because browsers share cookies between the ports of a host.
"""

from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from footplate.api.requests.own_origin import is_served_by_https
from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations.sign_in import is_session_secret

SECURE_NAME: Final = "__Host-footplate"
_PLAIN_NAME: Final = "footplate"


def read_session_cookie(connection: HTTPConnection) -> str | None:
    """Returns the secret in the cookie. Raises `Unauthenticated` for two different ones: another site has added one."""
    return read_cookie(connection, SECURE_NAME, f"{_PLAIN_NAME}_{_port_of(connection)}", check=True)


def read_cookie(connection: HTTPConnection, *names: str, check: bool = False) -> str | None:
    """Returns the first of these cookies. `check`: only if it looks like the secret of a session."""
    pairs = [
        pair.strip().partition("=") for header in connection.headers.getlist("cookie") for pair in header.split(";")
    ]
    for name in names:
        values = {value for found, _, value in pairs if found == name and (not check or is_session_secret(value))}
        if len(values) > 1:
            raise Unauthenticated(
                f"The request has more than one cookie {name!r}.",
                help_text="Delete the cookies of this site, and sign in again.",
            )
        if values:
            return values.pop()
    return None


def session_cookie_name(connection: HTTPConnection, origin: str | None) -> str:
    is_secure = is_served_by_https(connection) or (origin or "").lower().startswith("https://")
    return SECURE_NAME if is_secure else f"{_PLAIN_NAME}_{_port_of(connection)}"


def set_session_cookie(connection: HTTPConnection, response: Response, secret: str, lifetime: timedelta) -> None:
    name = session_cookie_name(connection, connection.headers.get("origin"))
    set_cookie(response, name, secret, lifetime, same_site="Strict")


def clear_session_cookies(connection: HTTPConnection, response: Response) -> None:
    for name in (SECURE_NAME, f"{_PLAIN_NAME}_{_port_of(connection)}"):
        set_cookie(response, name, "", timedelta(0), same_site="Strict")


def set_cookie(response: Response, name: str, value: str, lifetime: timedelta, *, same_site: str) -> None:
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    morsel = cookie[name]
    morsel["path"], morsel["httponly"], morsel["samesite"] = "/", True, same_site
    morsel["max-age"] = int(lifetime.total_seconds())
    if name.startswith("__Host-"):
        morsel["secure"] = True
    response.headers.append("set-cookie", morsel.OutputString())


def _port_of(connection: HTTPConnection) -> int:
    try:
        port = urlsplit(f"//{connection.headers.get('host', '')}").port
    except ValueError:
        port = None
    return port or (443 if is_served_by_https(connection) else 80)
