"""Authenticates requests by API key, or by the cookie of a browser session.

A key is sent as a bearer token (official SDKs) or in the header `x-api-key` (curl examples, older clients). A browser
sends cookies with every request, also with those of a hostile page. A request with a cookie must therefore come from a
page of this server, and if it changes something, also carry the CSRF token of the session.
"""

from typing import Annotated, Final

import structlog
from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from footplate.api.requests.own_origin import check_own_origin
from footplate.api.requests.session_cookie import read_session_cookie
from footplate.api.service_container import get_services
from footplate.domain.errors import Forbidden, Unauthenticated
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import is_csrf_token, is_session_secret

CSRF_HEADER: Final = "x-footplate-csrf"
_READING_METHODS: Final = frozenset({"GET", "HEAD"})


class CsrfTokenInvalid(Forbidden):
    """The request has the cookie of a browser session, but not its CSRF token."""

    code = "csrf_token_invalid"


async def authenticate(request: Request) -> Principal:
    secret = extract_secret(request, changes=request.method not in _READING_METHODS)
    principal = await get_services(request).keys.authenticate(secret)
    request.state.principal = principal
    structlog.contextvars.bind_contextvars(principal=principal.id)
    return principal


def extract_secret(connection: HTTPConnection, *, changes: bool = False) -> str:
    """Returns the API key, or else the secret of the browser session. The key has priority.

    `changes`: with a cookie, the request needs an origin, and a CSRF token unless it is a WebSocket, which cannot have
    headers.
    """
    if (key := _find_api_key(connection)) is not None:
        return key
    secret = read_session_cookie(connection)
    if secret is None:
        raise Unauthenticated(
            "The request has no API key.",
            help_text="Send an API key as `Authorization: Bearer …` or as `x-api-key`, or sign in with a browser.",
        )
    check_own_origin(connection, required=changes)
    if changes and connection.scope["type"] == "http":
        _check_csrf_token(connection, secret)
    return secret


def extract_api_key(connection: HTTPConnection) -> str | None:
    """Returns the API key of a request that may have none."""
    return _find_api_key(connection)


def _find_api_key(connection: HTTPConnection) -> str | None:
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        secret = connection.headers.get("x-api-key", "")
    return check_is_api_key(secret.strip()) if secret.strip() else None


def check_is_api_key(secret: str) -> str:
    """Raises `Unauthenticated` for the secret of a browser session, which is accepted only as a cookie."""
    if is_session_secret(secret):
        raise Unauthenticated(
            "The secret of a browser session is not an API key.",
            help_text="Create a key with `footplate api-keys create`.",
        )
    return secret


def _check_csrf_token(connection: HTTPConnection, secret: str) -> None:
    if not is_csrf_token(secret, connection.headers.get(CSRF_HEADER, "")):
        raise CsrfTokenInvalid(
            f"The request has no valid `{CSRF_HEADER}` header, which changes by a browser need.",
            help_text="Send `csrf_token` of `GET /v1/me` in this header. If your session has changed, reload the page.",
        )


Caller = Annotated[Principal, Depends(authenticate)]
